"""Continual counters with noise in a few leaky sums: a Toeplitz factorisation close to the square root."""

import functools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import default_float, factory
from jaxdp.mechanisms._grid import Grid, shape_of
from jaxdp.mechanisms.continual_counting.buffers import Buffers, find_buffers, row_norms, sensitivity
from jaxdp.mechanisms.continual_counting.counter import (
    Counter,
    Exact,
    add_sums,
    check_shapes,
    check_times,
    entry,
    fed_mask,
    spread,
    stream_dtype,
    whole_stream,
    zero_sums,
)
from jaxdp.mechanisms.continual_counting.noise import GaussianParams, gaussian_params
from jaxdp.mechanisms.continual_counting.radii import normal_radius
from jaxdp.mechanisms.continual_counting.steps import (
    add_steps,
    integers,
    noise_grid,
    normal_steps,
    numbers,
    with_error,
    zero_steps,
)
from jaxdp.mechanisms.tape import Entry, is_open, record
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.numerics.kernels import lanes_fast, separate_kernels
from jaxdp.validation import check_horizon

STEP = 2.0**-26  # maximum grid step, relative to the standard deviation of an entry's fresh noise
PARTS = 12  # number of binary digits of a leaky sum below one grid step


class ToeplitzState(NamedTuple):
    """State of Toeplitz counters. Secret: neither `total` nor `sums` may be released by itself.

    Attributes:
        clock: [*clocks] integers, the number of entries so far; horizon + 1 if there are more.
        total: [*shape] the exact sum: integers, or sums in fixed point, rounded only after adding noise.
        sums: [num_buffers + 1, *shape] leaky running sums of the drawn noise, as integers: multiples of 2^-12 grid
            steps. The dtype is complex64, which stores the bits of int64. The first sum does not leak.
    """

    clock: jax.Array
    total: Any
    sums: jax.Array


class Leaks(NamedTuple):
    """The gaps of the leaky sums of noise, and the weights of these sums in an estimate's noise.

    Attributes:
        gaps: [num_buffers + 1] float64, the fraction of each sum that is lost at every entry.
        weights: [num_buffers + 1] float64 with sum 1: the last entry's fresh noise has weight 1 in the estimate.
    """

    gaps: np.ndarray
    weights: np.ndarray


@factory
def toeplitz_counter(*, horizon: int, num_buffers: int | None = None) -> Counter:
    r"""Prefix sums of a stream with correlated Gaussian noise, of nearly optimal variance, in little memory.

    Let A be the matrix of prefix sums, factorised as A = B C. Releasing C x plus independent Gaussian noise z is as
    private as releasing the estimates A x + B z, because each determines the other. B and C are Toeplitz matrices for
    which B z is a weighted sum of a few leaky running sums of z. A search on the host finds their decays and weights.
    By default, the largest variance is within 1% of the largest variance of the square-root factorisation, which is
    nearly optimal. Noise that covers rounding adds to this variance (for one counter of 10^9 entries 0.4% at rho = 1,
    and 7% at rho = 0.01). The state has num_buffers + 2 numbers for each counter, or num_buffers + 3 for streams of
    floats; five buffers suffice up to 2^20 entries.

    Args:
        horizon: maximum number of entries.
        num_buffers: number of leaky running sums, 1 to 16; None means the smallest number for which the variance is
            within this 1%.

    Returns:
        A counter. `feed` draws one normal variate for each counter, from two Threefry hashes. `prefixes` draws the
        same noise as `feed` from the same keys. Results of `prefixes` and `read` are equal up to rounding; without
        noise they are equal bit for bit for streams of integers.

    Raises:
        ValueError: if an argument is out of its range.
        RuntimeError: if num_buffers is None, and no factorisation within 1% is found.

    Values:
        rho: > 0; infinity adds no noise: sums are exact, up to the precision of the float type.
        epsilon, delta: in place of rho, > 0 and in (0, 1).
        l2_sensitivity: > 0, by default 1.

    Privacy:
        - For all estimates together, also if entries depend on earlier estimates: rho-zCDP or (epsilon, delta)-DP in
          the central model, for the unit and adjacency of the sensitivity.
        - If one entry changes by 1, C x changes by at most the L2 norm of C's first column. Noise is calibrated to this
          norm, computed from the rounded weights and decays of B.
        - l2_sensitivity is the root of a sum over all counters that are fed with one `params`. If one unit changes one
          entry of a counter, or two entries by opposite signs, the counter contributes the sum of the squared changes
          (columns of C have positive inner products). If one unit makes other changes, the counter contributes the
          square of the sum of their absolute values.
        - Clocks and `fed` must not depend on the data.
        - There is no such counter for pure DP, because C's columns have a large L1 norm.

    Source:
        Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024), "Efficient and near-optimal noise generation for
        streaming differential privacy"; Fichtenberger, Henzinger & Upadhyay (2023) and Henzinger, Upadhyay & Upadhyay
        (2023) for the square root; Denisov et al. (2022), Theorem 2.1, for adaptive streams.

    Deviations:
        - Decays and weights minimise the worst variance numerically, among factorisations with interlaced poles. Leaky
          sums subtract gap * sum instead of multiplying by 1 - gap, which floats represent too coarsely.
        - Entries are added up as integers (floats as multiples of 2^-20). Noise is an integer, too, in steps between
          2^-27 and 2^-26 of the standard deviation of an entry's fresh noise: fresh noise plus a rounded function of
          earlier noise. So the release after an entry is an integer plus fresh noise. Rounding changes these integers,
          over all entries of m counters, by at most r * sqrt(m * horizon) steps in L2 norm, with r between 4 and 5 up
          to a horizon of 2^20, and 15 at 2^31. The noise is enlarged by the ratio of this change to the sensitivity
          (for one counter of 2^30 entries by 7% at rho = 1e-3, and by 109% at rho = 1e-5). `variance` and `radius`
          include the enlargement for one counter; for m counters it is sqrt(m) times larger. If the standard deviation
          of fresh noise exceeds 2^34 steps, estimates, variances and radii are NaN.
        - For audits (`jaxdp.mechanisms.tape`), every entry is recorded with the cost of the first one, the largest.

    Math:
        With $A = B C$ the matrix of prefix sums, the estimates of a stream $x$ are

        $$
        A x + \sigma B z, \quad z \sim N(0, I), \quad \sigma = \frac{\Delta |C e_1|}{\sqrt{2 \rho}}
        $$

        By default, the largest variance is within 1% of the largest variance of the square-root factorisation,

        $$
        V = \frac{s_T^2 \Delta^2}{2 \rho}, \quad s_T = \sum_{i < T} f_i^2, \quad f_0 = 1, \quad
        f_i = \frac{2 i - 1}{2 i} f_{i - 1}
        $$

    Examples:
        >>> counter = toeplitz_counter(horizon=2**20)
        >>> params = counter.params(rho=1.0)
        >>> bool(counter.variance(params, 2**20) < 1.01 * 15.0)
        True
    """
    horizon = check_horizon(horizon, spare=1)
    exact = find_buffers(horizon, num_buffers)
    weights, gaps = (array.astype(default_float()) for array in exact)
    buffers = Buffers(weights, gaps)  # as used, after rounding
    norm = sensitivity(buffers, horizon)
    used_weights = np.asarray(weights, np.float64)
    leaks = Leaks(np.asarray(gaps, np.float64), used_weights / used_weights.sum())
    rounding_per_counter = 4 * np.sqrt(horizon) * largest_rounding(leaks, horizon)

    def params(
        *,
        epsilon: float | None = None,
        delta: float | None = None,
        rho: float | None = None,
        l2_sensitivity: float = 1.0,
    ) -> GaussianParams:
        return gaussian_params(norm**2, epsilon=epsilon, delta=delta, rho=rho, l2_sensitivity=l2_sensitivity)

    def init(
        key,
        params: GaussianParams,
        shape: tuple[int, ...] = (),
        *,
        clocks: tuple[int, ...] = (),
        dtype: DTypeLike = int,
    ) -> ToeplitzState:
        del key, params
        shape, clocks = check_shapes(shape, clocks)
        return ToeplitzState(
            jnp.zeros(clocks, jnp.result_type(int)),
            zero_sums(shape, stream_dtype(dtype, default_float())),
            zero_steps((len(gaps), *shape)),
        )

    def grid_of(params: GaussianParams, size: int) -> Grid:
        """Returns the grid of noise on `size` sums."""
        return noise_grid(
            params, math.inf, used_weights.sum(), STEP, rounding_per_counter * np.sqrt(max(size, 1)), parts=PARTS
        )

    @in_64_bits
    def enlarged_stddev(params: GaussianParams) -> jax.Array:
        """Returns `noise_stddev` ([] float64) with the enlargement that covers rounding in one counter."""
        grid = grid_of(params, 1)
        return grid.scale * grid.step / used_weights.sum()

    def draw_and_record(key: jax.Array, params: GaussianParams, value: Exact, grid: Grid) -> tuple[Exact, jax.Array]:
        """Draws the noise of one entry, and records it."""
        stddev, change = jnp.asarray(params.noise_stddev), jnp.asarray(params.l2_sensitivity)
        column_norm = jnp.asarray(norm, stddev.dtype)
        noise, drawn = _draw(key, grid, shape_of(value), stddev.dtype)
        entry = Entry(
            "toeplitz", value, "l2", key, change / column_norm, noise_stddev=stddev / column_norm, noise=drawn
        )
        return record(entry), noise

    def feed(
        key: jax.Array, params: GaussianParams, state: ToeplitzState, value: ArrayLike, fed: ArrayLike = True
    ) -> ToeplitzState:
        shape = shape_of(state.total)
        mask = fed_mask(fed, state.clock.shape)
        wide_mask = spread(mask, shape)
        exact_entry = jax.tree.map(lambda x: jnp.where(wide_mask, x, 0), entry(value, shape, state.total))
        exact_entry, fresh = draw_and_record(key, params, exact_entry, grid_of(params, math.prod(shape)))
        sums = separate_kernels(
            functools.partial(_add_fresh_noise, leaks), state.sums, fresh, wide_mask, layout=lanes_fast
        )
        clock = jnp.minimum(state.clock + mask.astype(state.clock.dtype), horizon + 1)
        return ToeplitzState(clock, separate_kernels(add_sums, state.total, exact_entry, layout=lanes_fast), sums)

    def read(params: GaussianParams, state: ToeplitzState) -> jax.Array:
        shape = shape_of(state.total)
        return separate_kernels(
            functools.partial(_estimate, leaks, default_float()),
            state.total,
            state.sums,
            grid_of(params, math.prod(shape)),
            spread(state.clock, shape) <= horizon,
            layout=lanes_fast,
        )

    def prefixes(keys: jax.Array, params: GaussianParams, values: ArrayLike) -> jax.Array:
        values = whole_stream(keys, values, horizon, default_float())
        stream, grid = entry(values, values.shape, zero_sums((), values.dtype)), grid_of(params, values[0].size)
        stream, noise = jax.vmap(lambda key, value: draw_and_record(key, params, value, grid))(keys, stream)
        return _estimates(jax.lax.associative_scan(add_sums, stream), noise, leaks, grid, default_float())

    def variance(params: GaussianParams, times: ArrayLike) -> np.ndarray:
        with jax.ensure_compile_time_eval():
            stddev = np.asarray(enlarged_stddev(params))
        return np.square(stddev) * row_norms(buffers, check_times(times, horizon))

    def radius(params: GaussianParams, times: ArrayLike, failure_prob: ArrayLike) -> jax.Array:
        times = jnp.asarray(times).astype(default_float())
        logs = np.log1p(-np.asarray(gaps, np.float64))
        square = jnp.zeros_like(times)
        for j, (weight, log) in enumerate(zip(np.asarray(weights, np.float64), logs, strict=True)):
            for other_weight, other_log in list(zip(np.asarray(weights, np.float64), logs, strict=True))[: j + 1]:
                rate = float(log + other_log)
                terms = times if rate == 0 else jnp.expm1(times * rate) / float(np.expm1(rate))
                square = square + float(weight * other_weight) * (1 if other_log == log else 2) * terms
        return normal_radius(enlarged_stddev(params).astype(square.dtype) * jnp.sqrt(square), failure_prob)

    return Counter(params, init, feed, read, prefixes, variance, radius, horizon)


def largest_rounding(leaks: Leaks, horizon: int) -> float:
    """Returns a bound, in steps, on how much rounding changes the number to which an entry's noise is added."""
    # Rounding of the sum and rounding of the noise add half a step each. Each leaky sum is also rounded at every entry,
    # by at most 2^-13 steps; this error then leaks with the sum. 2^-5 covers additions in float64.
    rounds_in_memory = np.minimum(horizon, 1 / np.maximum(leaks.gaps, 1 / horizon))
    return 1 + float(leaks.weights @ np.where(leaks.gaps > 0, rounds_in_memory, 0.0)) * 2.0 ** -(PARTS + 1) + 2.0**-5


@in_64_bits
def _draw(key: jax.Array, grid: Grid, shape: tuple[int, ...], dtype: np.dtype) -> tuple[jax.Array, jax.Array | None]:
    """Returns an entry's noise in grid steps, and on a tape the same noise relative to its standard deviation."""
    if is_open():  # the tape has a draw at scale 0, too
        noise = normal_steps(key, grid.drawn, shape)
        return jnp.where(grid.scale == 0, 0, noise), (noise / grid.drawn).astype(dtype)
    return normal_steps(key, grid.drawn, shape, grid.scale != 0), None


@in_64_bits
def _add_fresh_noise(leaks: Leaks, sums: jax.Array, fresh: jax.Array, is_fed: jax.Array) -> jax.Array:
    """Returns the leaky sums after an entry."""
    gaps = leaks.gaps.reshape((-1,) + (1,) * fresh.ndim)
    change = (fresh * 2.0**PARTS)[None] - jnp.round(gaps * numbers(sums))
    return add_steps(sums, jnp.where(is_fed[None], change, 0))


@in_64_bits
def _estimate(
    leaks: Leaks, dtype: np.dtype, total: Exact, sums: jax.Array, grid: Grid, is_within: jax.Array
) -> jax.Array:
    grid = grid._replace(scale=jnp.where(is_within, grid.scale, jnp.nan))  # the result is NaN if the scale is NaN
    return with_error(total, noise_of(sums, leaks), grid, dtype)


def noise_of(sums: jax.Array, leaks: Leaks) -> jax.Array:
    """Returns the noise of an estimate ([*shape] float64), an integer number of steps. Call it in 64-bit mode."""
    # Weights add up to 1. So the noise is the first sum, an integer number of steps, plus weighted differences between
    # the other sums and the first one. The last entry's noise cancels in these differences.
    first, *leaky = (integers(sums[j]) for j in range(len(leaks.gaps)))
    weighted = jnp.zeros(first.shape, jnp.float64)
    for leaky_sum, weight in zip(leaky, leaks.weights[1:], strict=True):
        weighted = weighted + weight * (leaky_sum - first).astype(jnp.float64)
    return first.astype(jnp.float64) * 2.0**-PARTS + jnp.round(weighted * 2.0**-PARTS)


@in_64_bits
def _estimates(totals: Exact, fresh: jax.Array, leaks: Leaks, grid: Grid, dtype: np.dtype) -> jax.Array:
    """Returns the estimates of all prefixes, from the noise [T, ...] that `feed` draws."""

    def past_noise(gap: float) -> jax.Array:
        """Returns the part ([T, ...]) of the leaky sum after each entry that is due to noise of earlier entries."""

        # Decays near 1 are too coarse as floats. So their logarithms are added up.
        def join(left, right):
            return left[0] + right[0], left[1] * jnp.exp(right[0]) + right[1]

        logs = jnp.broadcast_to(jnp.float64(np.log1p(-gap)), fresh.shape)
        sums = jax.lax.associative_scan(join, (logs, fresh))[1]
        return (1 - gap) * jnp.concatenate([jnp.zeros_like(sums[:1]), sums[:-1]])

    past = sum(
        (weight * past_noise(gap) for gap, weight in zip(leaks.gaps, leaks.weights, strict=True)), jnp.zeros_like(fresh)
    )
    return with_error(totals, fresh + jnp.round(past), grid, dtype)

"""Continual counters from a Toeplitz factorisation near the square root, in a few running sums."""

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
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.numerics.kernels import lanes_fast, separate_kernels
from jaxdp.validation import check_horizon

STEP = 2.0**-26  # relative to the standard deviation of an entry's fresh noise
PARTS = 12  # binary digits of leaky sums below a step


class ToeplitzState(NamedTuple):
    """Toeplitz counters. Secret: neither `total` nor `sums` may be released by itself.

    Attributes:
        clock: [*clocks] integers, entries fed; at most horizon + 1.
        total: [*shape] the exact sum: integers, or sums in fixed point, rounded only after adding noise.
        sums: [num_buffers + 1, *shape] complex64, the bits of integers in units of 2^-12 of a grid step: leaky running
            sums of the drawn noise. The first one does not leak.
    """

    clock: jax.Array
    total: Any
    sums: jax.Array


class Leaks(NamedTuple):
    """Leaky sums, and their weights in the noise.

    Attributes:
        gaps: [num_buffers + 1] float64, share that each sum loses per entry.
        weights: [num_buffers + 1] float64, weights of sums in the noise, if an entry's own weight is 1.
    """

    gaps: np.ndarray
    weights: np.ndarray


@factory
def toeplitz_counter(*, horizon: int, num_buffers: int | None = None) -> Counter:
    r"""Prefix sums of a stream with correlated Gaussian noise: the square-root factorisation, in constant memory.

    Let A = B C be the matrix of prefix sums. C x is released with independent Gaussian noise z, and A x + B z is
    computed from it. B and C are Toeplitz with rational generating functions, so the noise is a sum of a few leaky
    running sums. Their decays and weights are found by a search on the host. The largest variance is within 1% of the
    largest variance of the square-root factorisation, which is nearly optimal. State: num_buffers + 2 numbers for each
    counter; six buffers suffice up to 2^20 entries.

    Args:
        horizon: largest number of entries.
        num_buffers: number of leaky running sums, 1 to 16; None takes the smallest number within 1%.

    Returns:
        A counter. `feed` draws one normal variate for each counter, two from each hash. `prefixes` uses the noise that
        `feed` draws with the same keys: results are equal up to rounding; bit for bit without noise, for integer
        streams.

    Raises:
        ValueError: if an argument is out of its range.
        RuntimeError: if no factorisation within 1% is found.

    Values:
        rho: > 0; infinity adds nothing: sums of integer streams are exact.
        epsilon, delta: in place of rho, > 0 and in (0, 1).
        l2_sensitivity: > 0, by default 1.

    Privacy:
        - For all estimates together, also where entries depend on earlier ones: rho-zCDP or (epsilon, delta)-DP in the
          central model, for the unit and adjacency of the sensitivity.
        - A change of one entry by 1 changes C x by at most the norm of C's first column. Noise is calibrated to this
          norm, computed from B as it is used, after rounding. l2_sensitivity is the root of the sum of the squared
          changes by one unit, over all entries of all counters fed with one `params`, if every counter has at most one
          change, or two of opposite sign (columns of C have positive products). Any other counter contributes the
          square of the sum of its absolute changes.
        - Clocks and `fed` must not depend on the data.
        - There is no such counter for pure DP: C's columns have a large L1 norm.

    Source:
        Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024), "Efficient and near-optimal noise generation for
        streaming differential privacy"; Fichtenberger, Henzinger & Upadhyay (2023) and Henzinger, Upadhyay & Upadhyay
        (2023) for the square root; Denisov et al. (2022), Theorem 2.1, for adaptive streams.

    Deviations:
        - Decays and weights minimise the worst variance numerically, among factorisations with interlaced poles. Leaky
          sums subtract gap * sum and do not multiply by 1 - gap, which floats represent too coarsely.
        - Entries are added up as integers (floats in multiples of 2^-20). Noise is an integer, too: fresh noise of an
          entry, with steps between 2^-27 and 2^-26 of its standard deviation, plus a rounded function of earlier noise.
          So the release after an entry is fresh noise on an integer. Rounding changes all these integers together by at
          most about 4 sqrt(horizon) steps in L2 norm (for units that change one entry of each counter). Noise is larger
          by this share, which `variance` does not include. Noise beyond 2^34 steps gives NaN.
        - The auditor's tape records the cost of the first entry, which is the largest, for every entry.

    Math:
        With $A = B C$ the matrix of prefix sums, the estimates of a stream $x$ are

        $$
        A x + \sigma B z, \quad z \sim N(0, I), \quad \sigma = \frac{\Delta |C e_1|}{\sqrt{2 \rho}}
        $$

        The largest variance is within 1% of the largest variance of the square-root factorisation,

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
    used = np.asarray(weights, np.float64)
    leaks = Leaks(np.asarray(gaps, np.float64), used / used.sum())
    off = 4 * np.sqrt(horizon) * largest_rounding(leaks, horizon)

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
        return noise_grid(params, math.inf, used.sum(), STEP, off * np.sqrt(max(size, 1)), parts=PARTS)

    def draw_and_record(key: jax.Array, params: GaussianParams, value: Exact, grid: Grid) -> tuple[Exact, jax.Array]:
        """Draws the noise of one entry, and records it."""
        stddev, moved = jnp.asarray(params.noise_stddev), jnp.asarray(params.l2_sensitivity)
        unit = jnp.asarray(norm, stddev.dtype)
        noise, drawn = _draw(key, grid, shape_of(value), stddev.dtype)
        entry = Entry("toeplitz", value, "l2", key, moved / unit, noise_stddev=stddev / unit, noise=drawn)
        return record(entry), noise

    def feed(
        key: jax.Array, params: GaussianParams, state: ToeplitzState, value: ArrayLike, fed: ArrayLike = True
    ) -> ToeplitzState:
        shape = shape_of(state.total)
        mask = fed_mask(fed, state.clock.shape)
        wide = spread(mask, shape)
        entered = jax.tree.map(lambda x: jnp.where(wide, x, 0), entry(value, shape, state.total))
        entered, fresh = draw_and_record(key, params, entered, grid_of(params, math.prod(shape)))
        sums = separate_kernels(functools.partial(_after, leaks), state.sums, fresh, wide, layout=lanes_fast)
        clock = jnp.minimum(state.clock + mask.astype(state.clock.dtype), horizon + 1)
        return ToeplitzState(clock, separate_kernels(add_sums, state.total, entered, layout=lanes_fast), sums)

    def read(params: GaussianParams, state: ToeplitzState) -> jax.Array:
        shape = shape_of(state.total)
        estimate = separate_kernels(
            functools.partial(_estimate, leaks, default_float()),
            state.total,
            state.sums,
            grid_of(params, math.prod(shape)),
            layout=lanes_fast,
        )
        return jnp.where(spread(state.clock, shape) <= horizon, estimate, jnp.nan)

    def prefixes(keys: jax.Array, params: GaussianParams, values: ArrayLike) -> jax.Array:
        values = whole_stream(keys, values, horizon, default_float())
        stream, grid = entry(values, values.shape, zero_sums((), values.dtype)), grid_of(params, values[0].size)
        stream, noise = jax.vmap(lambda key, value: draw_and_record(key, params, value, grid))(keys, stream)
        return _estimates(jax.lax.associative_scan(add_sums, stream), noise, leaks, grid, default_float())

    def variance(params: GaussianParams, times: ArrayLike) -> np.ndarray:
        stddev = np.asarray(params.noise_stddev, np.float64)
        return np.square(stddev) * row_norms(buffers, check_times(times, horizon))

    def radius(params: GaussianParams, times: ArrayLike, failure_prob: ArrayLike) -> jax.Array:
        times = jnp.asarray(times).astype(default_float())
        logs = np.log1p(-np.asarray(gaps, np.float64))
        square = jnp.zeros_like(times)
        for j, (first, log) in enumerate(zip(np.asarray(weights, np.float64), logs, strict=True)):
            for second, other in list(zip(np.asarray(weights, np.float64), logs, strict=True))[: j + 1]:
                rate = float(log + other)
                terms = times if rate == 0 else jnp.expm1(times * rate) / float(np.expm1(rate))
                square = square + float(first * second) * (1 if other == log else 2) * terms
        return normal_radius(jnp.asarray(params.noise_stddev) * jnp.sqrt(square), failure_prob)

    return Counter(params, init, feed, read, prefixes, variance, radius, horizon)


def largest_rounding(leaks: Leaks, horizon: int) -> float:
    """Bounds, in steps, the change by rounding of the number to which an entry's noise is added."""
    # half a step for rounded sums, half for rounded noise, and half a unit of a leaky sum in every round, which then
    # leaks; 2^-5 covers sums in float64
    rounds_in_memory = np.minimum(horizon, 1 / np.maximum(leaks.gaps, 1 / horizon))
    return 1 + float(leaks.weights @ np.where(leaks.gaps > 0, rounds_in_memory, 0.0)) * 2.0 ** -(PARTS + 1) + 2.0**-5


@in_64_bits
def _draw(key: jax.Array, grid: Grid, shape: tuple[int, ...], dtype: np.dtype) -> tuple[jax.Array, jax.Array]:
    """Returns an entry's noise in steps, and in units of its standard deviation."""
    noise = normal_steps(key, grid.drawn, shape)
    return jnp.where(grid.scale == 0, 0, noise), (noise / grid.drawn).astype(dtype)


@in_64_bits
def _after(leaks: Leaks, sums: jax.Array, fresh: jax.Array, is_fed: jax.Array) -> jax.Array:
    """Returns the leaky sums after an entry."""
    gaps = leaks.gaps.reshape((-1,) + (1,) * fresh.ndim)
    change = (fresh * 2.0**PARTS)[None] - jnp.round(gaps * numbers(sums))
    return add_steps(sums, jnp.where(is_fed[None], change, 0))


@in_64_bits
def _estimate(leaks: Leaks, dtype: np.dtype, total: Exact, sums: jax.Array, grid: Grid) -> jax.Array:
    return with_error(total, noise_of(sums, leaks), grid, dtype)


def noise_of(sums: jax.Array, leaks: Leaks) -> jax.Array:
    """Returns the noise of an estimate, float64, whole steps. Traced in 64 bits."""
    # Weights add up to one: the noise is the first sum, a whole number, plus weighted differences of the other sums
    # from it, in which an entry's own noise cancels.
    first, *leaky = (integers(sums[j]) for j in range(len(leaks.gaps)))
    weighted = jnp.zeros(first.shape, jnp.float64)
    for leaky_sum, weight in zip(leaky, leaks.weights[1:], strict=True):
        weighted = weighted + weight * (leaky_sum - first).astype(jnp.float64)
    return first.astype(jnp.float64) * 2.0**-PARTS + jnp.round(weighted * 2.0**-PARTS)


@in_64_bits
def _estimates(totals: Exact, fresh: jax.Array, leaks: Leaks, grid: Grid, dtype: np.dtype) -> jax.Array:
    """Returns the estimates of all prefixes, from the noise [T, ...] that `feed` draws."""

    def before(gap: float) -> jax.Array:
        """Returns the leaky sum before each entry, after its loss at this entry."""

        # logs of decays, as decays near 1 are coarse; a parallel scan over halves
        def join(left, right):
            return left[0] + right[0], left[1] * jnp.exp(right[0]) + right[1]

        logs = jnp.broadcast_to(jnp.float64(np.log1p(-gap)), fresh.shape)
        sums = jax.lax.associative_scan(join, (logs, fresh))[1]
        return (1 - gap) * jnp.concatenate([jnp.zeros_like(sums[:1]), sums[:-1]])

    past = sum(
        (weight * before(gap) for gap, weight in zip(leaks.gaps, leaks.weights, strict=True)), jnp.zeros_like(fresh)
    )
    return with_error(totals, fresh + jnp.round(past), grid, dtype)

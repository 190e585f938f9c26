"""Continual counters from a Toeplitz factorisation near the square root, in a few running sums."""

import functools
import operator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import default_float, factory
from jaxdp.mechanisms._grid import shape_of
from jaxdp.mechanisms.continual_counting.buffers import Buffers, find_buffers, row_norms, sensitivity
from jaxdp.mechanisms.continual_counting.counter import (
    Counter,
    Exact,
    check_shapes,
    check_times,
    entry,
    fed_mask,
    joined,
    nothing,
    spread,
    stream_dtype,
    whole_stream,
)
from jaxdp.mechanisms.continual_counting.noise import GaussianParams, gaussian_params
from jaxdp.mechanisms.continual_counting.radii import normal_radius
from jaxdp.mechanisms.noisy_sums import add_noise
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics.kernels import apart, lanes_last, own_kernel
from jaxdp.random import normals
from jaxdp.validation import check_horizon


class ToeplitzState(NamedTuple):
    """Toeplitz counters. Secret: neither half may be released by itself.

    Attributes:
        clock: [*clocks] integers, entries fed; at most horizon + 1.
        total: [*shape] the exact sum: integers, or sums in fixed point, rounded only with the noise.
        sums: [num_buffers + 1, *shape] float, leaky running sums of the noise drawn.
    """

    clock: jax.Array
    total: Any
    sums: jax.Array


@factory
def toeplitz_counter(*, horizon: int, num_buffers: int | None = None) -> Counter:
    """Prefix sums of a stream with correlated Gaussian noise: the square-root factorisation, in constant memory.

    With A = B C, A the prefix sums, C x is released with independent Gaussian noise z, and A x + B z computed from it.
    B and C are Toeplitz, with rational generating functions: noise is a sum of a few leaky running sums. They are
    searched for on the host; the largest variance is within 1% of that of the square-root factorisation, which is
    nearly the least of all. State: num_buffers + 2 numbers a counter; six buffers are enough up to 2^20 entries.

    Args:
        horizon: largest number of entries.
        num_buffers: leaky running sums, 1 to 16; None takes as few as come within 1%.

    Returns:
        A counter. `feed` draws one normal variate for each counter, two of each hash. `prefixes` has the noise that
        `feed` draws with the same keys: equal to it up to rounding; bit for bit without noise, for integer streams.

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
        - The change of one entry by 1 moves C x by at most the norm of C's first column, for which noise is calibrated:
          that of the very B used, rounded as it is. l2_sensitivity: the root of the sum of the squares of the changes
          that one unit makes, over all entries of all counters fed with one `params`, if no two are in one counter, or
          two of opposite sign (columns of C have positive products); else a counter counts by the sum of its absolute
          changes.
        - Clocks and `fed` must not depend on the data.
        - There is no such counter for pure DP: C's columns are long in L1 norm.

    Source:
        Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024), "Efficient and near-optimal noise generation for
        streaming differential privacy"; Fichtenberger, Henzinger & Upadhyay (2023) and Henzinger, Upadhyay & Upadhyay
        (2023) for the square root; Denisov et al. (2022), Theorem 2.1, for adaptive streams.

    Deviations:
        Decays and weights minimise the worst variance numerically, among factorisations with interlaced poles. Sum and
        noise are kept apart: entries are added up as integers (floats in multiples of 2^-20), and nothing stalls. Noise
        is made of floats: normal variates of a float's digits that end at 6.7 standard deviations
        (`jaxdp.random.normals`), in leaky sums that round; it meets the exact sum in 64 bits. So the claim holds up to
        floating point. Leaky sums lose gap * sum, not 1 - gap, which floats hold too coarsely. On a tape an entry of
        the stream costs what it costs at most, at the beginning of the stream.

    Examples:
        >>> counter = toeplitz_counter(horizon=2**20)
        >>> params = counter.params(rho=1.0)
        >>> bool(counter.variance(params, 2**20) < 1.01 * 15.0)
        True
    """
    horizon = check_horizon(horizon, spare=1)
    exact = find_buffers(horizon, num_buffers)
    weights, gaps = (x.astype(default_float()) for x in exact)
    buffers = Buffers(weights, gaps)  # as they are used: rounded
    norm = sensitivity(buffers, horizon)

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
            nothing(shape, stream_dtype(dtype, default_float())),
            jnp.zeros((len(gaps), *shape), default_float()),
        )

    def noised(key: jax.Array, params: GaussianParams, value: Exact) -> tuple[Exact, jax.Array]:
        """One entry, and the noise drawn with it. The entry itself is not released, but is noised in effect."""
        noise = normals(key, shape_of(value), default_float())
        stddev, moved = jnp.asarray(params.noise_stddev), jnp.asarray(params.l2_sensitivity)
        unit = jnp.asarray(norm, stddev.dtype)
        entry = Entry("toeplitz", value, "l2", key, moved / unit, noise_stddev=stddev / unit, noise=noise)
        scaled = own_kernel(
            lambda stddev, noise: lanes_last(stddev * lanes_last(noise)), stddev, lanes_last(noise)
        )  # once for all leaky sums
        return record(entry), lanes_last(scaled)

    def feed(
        key: jax.Array, params: GaussianParams, state: ToeplitzState, value: ArrayLike, fed: ArrayLike = True
    ) -> ToeplitzState:
        shape = state.sums.shape[1:]
        mask = fed_mask(fed, state.clock.shape)
        wide = spread(mask, shape)
        entered = jax.tree.map(lambda x: jnp.where(wide, x, 0), entry(value, shape, state.total))
        entered, noise = noised(key, params, entered)
        leaks = jnp.asarray(gaps).reshape((-1,) + (1,) * len(shape))
        sums = jnp.where(wide[None], state.sums + (noise[None] - leaks * state.sums), state.sums)
        clock = jnp.minimum(state.clock + mask.astype(state.clock.dtype), horizon + 1)
        return ToeplitzState(clock, apart(joined, state.total, entered), sums)

    def weighted(sums: jax.Array) -> jax.Array:
        return functools.reduce(operator.add, [jnp.asarray(weight) * sums[j] for j, weight in enumerate(weights)])

    def read(params: GaussianParams, state: ToeplitzState) -> jax.Array:
        del params
        noise = weighted(state.sums)
        estimate = apart(add_noise, state.total, noise)
        return jnp.where(spread(state.clock, estimate.shape) <= horizon, estimate, jnp.nan)

    def prefixes(keys: jax.Array, params: GaussianParams, values: ArrayLike) -> jax.Array:
        values = whole_stream(keys, values, horizon, default_float())
        stream = entry(values, values.shape, nothing((), values.dtype))
        stream, noise = jax.vmap(lambda key, value: noised(key, params, value))(keys, stream)

        def running(gap: jax.Array) -> jax.Array:
            # log of the decay, as decays near 1 are coarse; sums over halves, then over halves of those
            def join(left, right):
                return left[0] + right[0], left[1] * jnp.exp(right[0]) + right[1]

            logs = jnp.broadcast_to(jnp.log1p(-gap), noise.shape)
            return jax.lax.associative_scan(join, (logs, noise))[1]

        sums = jnp.stack([running(gap) for gap in jnp.asarray(gaps)])
        return add_noise(jax.lax.associative_scan(joined, stream), weighted(sums))

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

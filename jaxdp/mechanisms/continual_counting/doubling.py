"""Continual counters for streams of unknown length: trees in epochs of growing length."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import default_float, factory
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.mechanisms.continual_counting.arity import check_arity, digits_of, level_variances, num_digits
from jaxdp.mechanisms.continual_counting.counter import (
    Counter,
    check_shapes,
    check_times,
    entry,
    fed_mask,
    stream_dtype,
    whole_stream,
)
from jaxdp.mechanisms.continual_counting.noise import counter_noise
from jaxdp.mechanisms.continual_counting.radii import (
    HUGE,
    block_cumulant,
    chernoff,
    level_cumulants,
    normal_radius,
    rate_grid,
)
from jaxdp.numerics.lookup import widen_index
from jaxdp.validation import check_horizon


class DoublingState(NamedTuple):
    """State of doubling counters. Secret.

    Attributes:
        clock: [] integer, the number of entries so far; horizon + 1 if there are more.
        closed: [*shape] float, the estimate of the sum of all closed epochs.
        nodes: the blocks that make up the current epoch so far.
    """

    clock: jax.Array
    closed: jax.Array
    nodes: tree.Nodes


@factory
def doubling_counter(
    *, horizon: int = 2**31 - 2, arity: int = 2, noise: str = "laplace", combine: bool = True
) -> Counter:
    r"""Prefix sums of a stream of unknown length; a new tree starts when the length has grown by a factor of `arity`.

    Epoch m = 0, 1, ... has the entries arity^m to arity^(m + 1) - 1, counted from 1, in a tree of m + 1 levels. Each
    tree spends the whole budget. After an epoch only the estimate of its sum is stored. The variance at time t is a few
    times the variance of a tree for t entries, for any horizon.

    Args:
        horizon: maximum number of entries that the state can count; the noise does not depend on the horizon.
        arity: >= 2.
        noise: "laplace" or "gaussian".
        combine: as for `tree_counter`.

    Returns:
        A counter; all counters of an array share one clock. With `combine`, `feed` draws one noise variate for each
        counter and each level of the largest tree; otherwise it draws one variate for each counter. `prefixes` runs
        `feed`, and so gives the same results.

    Raises:
        ValueError: if an argument is out of its range. The result's `init` raises this error for clocks.

    Values:
        As for `tree_counter`.

    Privacy:
        - As for `tree_counter`, for streams of every length.
        - An entry is in one epoch m, and in at most one block of each of its m + 1 levels. Noise is calibrated to
          (m + 1) * l1_sensitivity or sqrt(m + 1) * l2_sensitivity. Epochs have disjoint entries.

    Source:
        Chan, Shi & Song (2011), the hybrid mechanism.

    Deviations:
        Chan, Shi & Song release the sum of each epoch a second time, with a part of the budget. Here the tree's
        estimate of this sum is used, so that every tree has the whole budget. The arity can be chosen. Sums are
        computed as in `tree_counter`; noise is added as in `laplace` and `gaussian`, and covers rounding for the units
        of `tree_counter`.

    Math:
        Each block sum of epoch $m$ gets, for an entry of sensitivity $\Delta$, the noise

        $$
        Z \sim \mathrm{Laplace}(b), \quad b = \frac{(m + 1) \Delta}{\varepsilon}
        $$

        and for "gaussian" normal noise of the variance $(m + 1) \Delta^2 / (2 \rho)$. The estimate at $t$ is the sum of
        the estimates of the closed epochs and of the blocks of the current one.
    """
    horizon, arity = check_horizon(horizon, spare=1), check_arity(arity)
    levels = num_digits(horizon, arity)
    heights = np.arange(1, levels + 1)  # heights of the trees of epochs 0, 1, ...
    kind = counter_noise(noise, heights)
    variances = level_variances(arity, levels, combine)
    starts = np.asarray([arity**m for m in range(levels)], np.int64)
    integer = jnp.result_type(int)

    def init(
        key, params: Any, shape: tuple[int, ...] = (), *, clocks: tuple[int, ...] = (), dtype: DTypeLike = int
    ) -> DoublingState:
        del key, params
        shape, _ = check_shapes(shape, clocks)
        if clocks:
            raise ValueError(f"clocks must be () for doubling counters, got {clocks}")
        sums = stream_dtype(dtype, default_float())
        return DoublingState(
            clock=jnp.zeros((), integer),
            closed=jnp.zeros(shape, default_float()),
            nodes=tree.empty(levels, shape, (), sums, default_float()),
        )

    def epoch_of(times: jax.Array) -> jax.Array:
        return sum(
            ((times >= int(start)).astype(jnp.int32) for start in starts[1:]), start=jnp.zeros_like(times, jnp.int32)
        )

    def feed(key: jax.Array, params: Any, state: DoublingState, value: ArrayLike, fed: ArrayLike = True):
        sums, shape, mask = state.nodes.sums, state.nodes.estimates.shape[1:], fed_mask(fed, ())
        clock = jnp.minimum(state.clock + mask.astype(integer), horizon + 1)
        epoch = epoch_of(clock)
        # the first entry of an epoch closes the previous epoch
        opens = mask & (clock == jnp.asarray(starts, integer)[epoch])
        closed = jnp.where(opens, state.closed + state.nodes.estimates.sum(axis=0), state.closed)
        nodes = jax.tree.map(lambda x: jnp.where(opens, jnp.zeros_like(x), x), state.nodes)
        ended_blocks = tree.ending_blocks(nodes, entry(value, shape, sums), mask, arity)
        if combine:
            noisy = kind.add(key, params, epoch, ended_blocks.sums, math.prod(shape))
            estimates = tree.combine_estimates(nodes, noisy, variances)
        else:
            noisy = kind.add(key, params, epoch, tree.largest(ended_blocks), math.prod(shape))
            estimates = jnp.broadcast_to(noisy, (levels, *shape))
        return DoublingState(clock, closed, tree.advance(nodes, ended_blocks, estimates))

    def read(params: Any, state: DoublingState) -> jax.Array:
        del params
        return jnp.where(state.clock <= horizon, state.closed + state.nodes.estimates.sum(axis=0), jnp.nan)

    def prefixes(keys: jax.Array, params: Any, values: ArrayLike) -> jax.Array:
        stream = whole_stream(keys, values, horizon, default_float())

        def step(state, key_and_entry):
            state = feed(key_and_entry[0], params, state, key_and_entry[1])
            return state, read(params, state)

        start = init(None, params, stream.shape[1:], dtype=stream.dtype)
        return jax.lax.scan(step, start, (keys, stream))[1]

    def variance(params: Any, times: ArrayLike) -> np.ndarray:
        times = check_times(times, horizon)
        epochs = np.searchsorted(starts, times, side="right") - 1
        nodes = kind.variance(params)
        closed = np.concatenate([[0.0], np.cumsum((arity - 1) * nodes * variances)])[epochs]
        return closed + nodes[epochs] * (digits_of(times - starts[epochs] + 1, arity, levels) @ variances)

    rates = rate_grid(variances)
    cumulants = np.minimum(level_cumulants(rates, arity, variances), HUGE)
    # cumulants of all epochs before epoch m, which have smaller noise, at rates in units of epoch m's noise scale
    before = np.zeros((levels, len(rates)))
    for m in heights:
        for k in range(1, m):
            cumulant = block_cumulant(k - 1, rates * k / m, arity, variances)
            before[m - 1] += (arity - 1) * np.minimum(cumulant, HUGE)

    def radius(params: Any, times: ArrayLike, failure_prob: ArrayLike) -> jax.Array:
        times = widen_index(jnp.asarray(times))
        epochs = epoch_of(times)
        position = times - jnp.asarray(starts, times.dtype)[epochs] + 1
        powers = [arity**h for h in range(levels)]
        digits = jnp.stack([position // power % arity for power in powers], axis=-1).astype(default_float())
        scale = kind.scale(params, epochs)
        if noise == "gaussian":
            stddevs = jnp.asarray(params.noise_stddev)
            epoch_variances = (arity - 1) * jnp.square(stddevs) * jnp.asarray(variances, stddevs.dtype)
            closed = jnp.concatenate([jnp.zeros_like(epoch_variances[:1]), jnp.cumsum(epoch_variances)])[epochs]
            current = jnp.square(scale) * jnp.matmul(digits, jnp.asarray(variances, digits.dtype), precision="highest")
            return normal_radius(jnp.sqrt(closed + current), failure_prob)
        totals = jnp.matmul(digits, jnp.asarray(cumulants, digits.dtype), precision="highest")
        return scale * chernoff(totals + jnp.asarray(before, totals.dtype)[epochs], rates, failure_prob)

    return Counter(kind.params, init, feed, read, prefixes, variance, radius, horizon)

"""Continual counters from trees of any arity."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import default_float, factory
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.mechanisms.continual_counting.arity import best_arity, check_arity, digits_of, level_variances, num_digits
from jaxdp.mechanisms.continual_counting.counter import (
    Counter,
    Exact,
    check_shapes,
    check_times,
    entry,
    fed_mask,
    nothing,
    spread,
    stream_dtype,
    summed,
    whole_stream,
)
from jaxdp.mechanisms.continual_counting.gaussian_tree import gaussian_tree
from jaxdp.mechanisms.continual_counting.noise import node_noise
from jaxdp.mechanisms.continual_counting.radii import HUGE, chernoff, level_cumulants, normal_radius, rate_grid
from jaxdp.validation import check_horizon


class TreeState(NamedTuple):
    """Tree counters. Secret.

    Attributes:
        clock: [*clocks] integers, entries fed; at most horizon + 1.
        nodes: the blocks that make up the stream so far.
    """

    clock: jax.Array
    nodes: tree.Nodes


@factory
def tree_counter(
    *, horizon: int, arity: int | None = None, noise: str = "laplace", combine: bool = True, objective: str = "mean"
) -> Counter:
    """Prefix sums of a stream from a tree of noisy block sums.

    A block of arity^h entries, h = 0..levels - 1, where levels is the number of digits of the horizon, is noised once,
    when its last entry comes; a prefix is a sum of disjoint blocks, digit by digit of its length. With `combine`, a
    block's own noisy sum is averaged with those of the blocks inside it, by their variances: the best linear unbiased
    estimate from what has been released. State: about 3 numbers a level and counter, or 1 with Gaussian noise.

    Args:
        horizon: largest number of entries.
        arity: children of a node, >= 2; None is `best_arity`, and depends on the horizon, noise and combination alone.
        noise: "laplace" or "gaussian".
        combine: whether nodes are combined with their descendants.
        objective: what the chosen arity makes least, "mean" or "max" of the variance up to the horizon.

    Returns:
        A counter. `feed` draws levels words for each counter; one, if not `combine`, or if noise is Gaussian, when what
        an entry adds to all blocks' noise is drawn at once. `prefixes` has the noise that `feed` draws with the same
        keys: equal to it up to rounding; bit for bit without noise, as long as integers fit the float.

    Raises:
        ValueError: if an argument is out of its range.

    Values:
        epsilon: > 0, of Laplace noise, and with delta of Gaussian noise. Infinity adds nothing: sums are exact (to the
            float's precision).
        l1_sensitivity: of Laplace noise, > 0, by default 1.
        rho: > 0, of Gaussian noise, in place of epsilon and delta.
        delta: of Gaussian noise, in (0, 1), with epsilon.
        l2_sensitivity: of Gaussian noise, > 0, by default 1.

    Privacy:
        - For all estimates together, also where entries depend on earlier ones: epsilon-DP (Laplace), rho-zCDP or
          (epsilon, delta)-DP (Gaussian) in the central model, for the unit and adjacency of the sensitivity.
        - An entry is in at most one block of each level, so a change by 1 moves all blocks together by at most levels
          in L1, by sqrt(levels) in L2 norm; noise is Laplace(levels l1_sensitivity / epsilon), or that of the Gaussian
          mechanism at sqrt(levels) l2_sensitivity. l1_sensitivity: the sum of the absolute changes that one unit makes,
          over all entries of all counters fed with one `params`. l2_sensitivity: the root of the sum of their squares,
          if no two are in one counter, or two of opposite sign (a block with both moves less); else a counter counts by
          the sum of its absolute changes.
        - Clocks and `fed` must not depend on the data, except through what has been released.

    Source:
        Dwork, Naor, Pitassi & Rothblum (2010); Chan, Shi & Song (2011); Honaker (2015), from the leaves up, for
        `combine`; Qardaji, Yang & Li (2013) for the arity.

    Deviations:
        Blocks are summed up as integers (entries that are floats in multiples of 2^-20), Laplace noise is added to
        these as in `laplace`, and what is released is rounded to floats: estimates are, too, but nothing stalls or
        drifts. With Gaussian noise errors are integers as well: fresh noise in steps of at most 2^-24 of its standard
        deviation, of which sums are multiples, and a rounded function of earlier noise. So an entry's release is fresh
        noise on an integer, which rounding moves by a step more for each level; noise is made for that, in units that
        change one entry of each counter. Noise beyond 2^46 steps gives NaN.

    Examples:
        >>> counter = tree_counter(horizon=2**20 - 1)
        >>> params = counter.params(epsilon=1.0)
        >>> [round(float(v)) for v in counter.variance(params, np.asarray([1, 16, 1000, 2**20 - 1]))]
        [50, 47, 1199, 3565]
    """
    horizon = check_horizon(horizon, spare=1)
    chosen = best_arity(horizon, noise=noise, combine=combine, objective=objective)
    arity = chosen if arity is None else check_arity(arity)
    levels = num_digits(horizon, arity)
    kind = node_noise(noise, levels)
    variances = level_variances(arity, levels, combine)
    rates = rate_grid(variances)
    cumulants = np.minimum(level_cumulants(rates, arity, variances), HUGE)

    def init(
        key, params: Any, shape: tuple[int, ...] = (), *, clocks: tuple[int, ...] = (), dtype: DTypeLike = int
    ) -> TreeState:
        del key, params
        shape, clocks = check_shapes(shape, clocks)
        sums = stream_dtype(dtype, default_float())
        return TreeState(
            jnp.zeros(clocks, jnp.result_type(int)), tree.empty(levels, shape, clocks, sums, default_float())
        )

    def feed(key: jax.Array, params: Any, state: TreeState, value: ArrayLike, fed: ArrayLike = True) -> TreeState:
        sums, shape = state.nodes.sums, state.nodes.estimates.shape[1:]
        mask = fed_mask(fed, state.clock.shape)
        done = tree.ended(state.nodes, entry(value, shape, sums), mask, arity)
        if combine:
            noisy = kind.add(key, params, None, done.sums)
            estimates = tree.combined(state.nodes, noisy, variances)
        else:
            noisy = kind.add(key, params, None, tree.largest(done))
            estimates = jnp.broadcast_to(noisy, (levels, *shape))
        clock = jnp.minimum(state.clock + mask.astype(state.clock.dtype), horizon + 1)
        return TreeState(clock, tree.advance(state.nodes, done, estimates))

    def read(params: Any, state: TreeState) -> jax.Array:
        del params
        estimates = state.nodes.estimates.sum(axis=0)
        return jnp.where(spread(state.clock, estimates.shape) <= horizon, estimates, jnp.nan)

    def prefixes(keys: jax.Array, params: Any, values: ArrayLike) -> jax.Array:
        stream = whole_stream(keys, values, horizon, default_float())
        sums = [entry(stream, stream.shape, nothing((), stream.dtype))]
        for _ in range(num_digits(len(stream), arity) - 1):
            sums.append(summed(jax.tree.map(lambda blocks: tree.groups(blocks, arity), sums[-1]), 1))
        noisy = _release(keys, params, sums)
        estimates = [noisy[0]]
        for h in range(1, len(sums)):
            own, rest = noisy[h], jnp.asarray(1 - variances[h], default_float())
            children = tree.groups(estimates[-1], arity).sum(axis=1)
            estimates.append(own + rest * (children - own))
        return sum(
            (
                tree.before(blocks, arity)[jnp.arange(1, len(stream) + 1) // arity**h]
                for h, blocks in enumerate(estimates)
            ),
            start=jnp.zeros_like(noisy[0]),
        )

    def _release(keys: jax.Array, params: Any, sums: list[Exact]) -> list[jax.Array]:
        """Each level's noisy sums, with the noise that `feed` draws."""
        ends = [slice(arity**h - 1, None, arity**h) for h in range(len(sums))]

        def by_entry(*sums: jax.Array) -> jax.Array:
            """What ends with each entry of the stream: of each level, or of the largest."""
            if not combine:
                values = sums[0]
                for end, blocks in zip(ends, sums, strict=True):
                    values = values.at[end].set(blocks)
                return values
            values = jnp.zeros((len(keys), levels, *sums[0].shape[1:]), sums[0].dtype)
            for h, blocks in enumerate(sums):
                values = values.at[ends[h], h].set(blocks)
            return values

        values = jax.tree.map(by_entry, *sums)
        noisy = jax.vmap(lambda key, value: kind.add(key, params, None, value))(keys, values)
        return [noisy[end, h] if combine else noisy[end] for h, end in enumerate(ends)]

    def variance(params: Any, times: ArrayLike) -> np.ndarray:
        digits = digits_of(check_times(times, horizon), arity, levels)
        return kind.variance(params) * (digits @ variances)

    def radius(params: Any, times: ArrayLike, failure_prob: ArrayLike) -> jax.Array:
        times = jnp.asarray(times)
        powers = [arity**h for h in range(levels)]
        digits = jnp.stack([times // power % arity for power in powers], axis=-1).astype(default_float())
        if noise == "gaussian":
            return normal_radius(kind.scale(params, None) * jnp.sqrt(_dot(digits, variances)), failure_prob)
        return kind.scale(params, None) * chernoff(_dot(digits, cumulants), rates, failure_prob)

    if noise == "gaussian":
        made = gaussian_tree(horizon, arity, variances)
        return Counter(kind.params, *made, variance, radius, horizon)
    return Counter(kind.params, init, feed, read, prefixes, variance, radius, horizon)


def _dot(digits: jax.Array, table: np.ndarray) -> jax.Array:
    return jnp.matmul(digits, jnp.asarray(table, digits.dtype), precision="highest")

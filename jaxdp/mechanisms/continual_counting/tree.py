"""Continual counters from trees of any arity."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike, DTypeLike

from jaxdp.core import default_float, factory
from jaxdp.mechanisms._grid import shape_of
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.mechanisms.continual_counting.arity import best_arity, check_arity, digits_of, level_variances, num_digits
from jaxdp.mechanisms.continual_counting.counter import (
    Counter,
    Exact,
    check_shapes,
    check_times,
    entry,
    fed_mask,
    spread,
    stream_dtype,
    sum_along,
    whole_stream,
    zero_sums,
)
from jaxdp.mechanisms.continual_counting.gaussian_tree import gaussian_tree
from jaxdp.mechanisms.continual_counting.noise import counter_noise
from jaxdp.mechanisms.continual_counting.radii import HUGE, chernoff, level_cumulants, normal_radius, rate_grid
from jaxdp.numerics.lookup import widen_index
from jaxdp.validation import check_horizon


class TreeState(NamedTuple):
    """State of tree counters with Laplace noise. Secret.

    Attributes:
        clock: [*clocks] integers, the number of entries so far; horizon + 1 if there are more.
        nodes: the blocks that make up the stream so far.
    """

    clock: jax.Array
    nodes: tree.Nodes


@factory
def tree_counter(
    *, horizon: int, arity: int | None = None, noise: str = "laplace", combine: bool = True, objective: str = "mean"
) -> Counter:
    r"""Prefix sums of a stream from a tree of noisy block sums.

    Blocks have arity^h entries, h = 0..levels - 1, where levels is the number of digits of the horizon in base arity.
    Noise is added to each block's sum once, when its last entry arrives. A prefix is a union of disjoint blocks, given
    by the digits of its length. For each level and counter the state has 2 numbers (3 for streams of floats), or 1 with
    Gaussian noise. It has one more number for each level and clock.

    Args:
        horizon: maximum number of entries.
        arity: number of children of a node, >= 2; None means the result of `best_arity` for this horizon, noise,
            combine and objective.
        noise: "laplace" or "gaussian".
        combine: whether a block is estimated from its noisy sum and the noisy sums of all blocks inside it, by the best
            linear unbiased estimate; if False, from its noisy sum only.
        objective: "mean" or "max" of the variance up to the horizon, which `best_arity` minimises.

    Returns:
        A counter. `feed` draws `levels` noise variates for each counter. Without `combine`, or with Gaussian noise,
        `feed` draws one variate: with Gaussian noise one draw gives the noise that an entry adds to all blocks.
        `prefixes` draws the same noise as `feed` from the same keys. Results of both are equal up to rounding; without
        noise they are equal bit for bit if the float type represents the integers.

    Raises:
        ValueError: if an argument is out of its range.

    Values:
        epsilon: > 0, for Laplace noise, and with delta for Gaussian noise. Infinity adds no noise: sums are exact, up
            to the precision of the float type.
        l1_sensitivity: > 0, for Laplace noise, by default 1.
        rho: > 0, for Gaussian noise, instead of epsilon and delta.
        delta: in (0, 1), for Gaussian noise, with epsilon.
        l2_sensitivity: > 0, for Gaussian noise, by default 1.

    Privacy:
        - For all estimates together, also if entries depend on earlier estimates: epsilon-DP (Laplace), rho-zCDP or
          (epsilon, delta)-DP (Gaussian) in the central model, for the unit and adjacency of the sensitivity.
        - An entry is in at most one block of each level. So a change of the entry by 1 changes all blocks together by
          at most levels in L1 norm, and sqrt(levels) in L2 norm. Noise is Laplace(levels * l1_sensitivity / epsilon),
          or is calibrated by the Gaussian mechanism to sqrt(levels) * l2_sensitivity.
        - l1_sensitivity is the sum of the absolute changes by one unit, over all entries of all counters that are fed
          with one `params`. l2_sensitivity is the root of a sum over these counters: a counter with at most one change,
          or two changes of opposite sign, contributes the sum of the squared changes; any other counter contributes the
          square of the sum of its absolute changes.
        - Clocks and `fed` must not depend on the data, except through releases.

    Source:
        Dwork, Naor, Pitassi & Rothblum (2010); Chan, Shi & Song (2011); Honaker (2015), from the leaves up, for
        `combine`; Qardaji, Yang & Li (2013) for the arity.

    Deviations:
        Blocks are summed as integers (float entries in multiples of 2^-20), and Laplace noise is added to these sums as
        in `laplace`. With float entries, Laplace noise covers the rounding of every block with a changed entry, for
        units that change one entry of each counter. Only releases and estimates are rounded to floats, so rounding
        errors do not accumulate. With Gaussian noise the errors of estimates are integers, too, in grid steps of at
        most 2^-24 of the fresh noise's standard deviation: fresh noise, plus a rounded function of earlier noise. So
        the release after an entry is an integer plus fresh noise, and rounding adds at most one step for each level to
        the change of this integer. The noise covers this for units that change one entry of each counter. If the least
        standard deviation of fresh noise exceeds 2^46 steps, estimates are NaN.

    Math:
        With $k$ levels, an entry of sensitivity $\Delta$ is in $k$ blocks, and each block sum gets the noise

        $$
        Z \sim \mathrm{Laplace}(b), \quad b = \frac{k \Delta}{\varepsilon}
        $$

        or for "gaussian" normal noise of the variance

        $$
        V = \frac{k \Delta^2}{2 \rho}
        $$

        With $d_h(t)$ the digits of $t$ in base $A$, the arity, the estimate at $t$ has the variance

        $$
        2 b^2 \sum_h d_h(t) v_h, \quad v_0 = 1, \quad v_h = \frac{1}{1 + 1 / (A v_{h-1})}
        $$

        with combined nodes, and $v_h = 1$ otherwise; for "gaussian" $V$ replaces $2 b^2$.

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
    kind = counter_noise(noise, levels)
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
        ended_blocks = tree.ending_blocks(state.nodes, entry(value, shape, sums), mask, arity)
        if combine:
            noisy = kind.add(key, params, None, ended_blocks.sums, math.prod(shape))
            estimates = tree.combine_estimates(state.nodes, noisy, variances)
        else:
            noisy = kind.add(key, params, None, tree.largest(ended_blocks), math.prod(shape))
            estimates = jnp.broadcast_to(noisy, (levels, *shape))
        clock = jnp.minimum(state.clock + mask.astype(state.clock.dtype), horizon + 1)
        return TreeState(clock, tree.advance(state.nodes, ended_blocks, estimates))

    def read(params: Any, state: TreeState) -> jax.Array:
        del params
        estimates = state.nodes.estimates.sum(axis=0)
        return jnp.where(spread(state.clock, estimates.shape) <= horizon, estimates, jnp.nan)

    def prefixes(keys: jax.Array, params: Any, values: ArrayLike) -> jax.Array:
        stream = whole_stream(keys, values, horizon, default_float())
        sums = [entry(stream, stream.shape, zero_sums((), stream.dtype))]
        for _ in range(num_digits(len(stream), arity) - 1):
            sums.append(sum_along(jax.tree.map(lambda blocks: tree.groups(blocks, arity), sums[-1]), 1))
        noisy = _release(keys, params, sums)
        estimates = [noisy[0]]
        for h in range(1, len(sums)):
            parent, weight = noisy[h], jnp.asarray(1 - variances[h], default_float())
            children = tree.groups(estimates[-1], arity).sum(axis=1)
            estimates.append(parent + weight * (children - parent))
        return sum(
            (
                tree.before(blocks, arity)[jnp.arange(1, len(stream) + 1) // arity**h]
                for h, blocks in enumerate(estimates)
            ),
            start=jnp.zeros_like(noisy[0]),
        )

    def _release(keys: jax.Array, params: Any, sums: list[Exact]) -> list[jax.Array]:
        """Returns each level's noisy block sums, with the noise that `feed` draws."""
        ends = [slice(arity**h - 1, None, arity**h) for h in range(len(sums))]

        def by_entry(*sums: jax.Array) -> jax.Array:
            """Returns the sums of blocks that end with each entry: all of them, or only the largest block's sum."""
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
        counters = math.prod(shape_of(sums[0])[1:])
        noisy = jax.vmap(lambda key, value: kind.add(key, params, None, value, counters))(keys, values)
        return [noisy[end, h] if combine else noisy[end] for h, end in enumerate(ends)]

    def variance(params: Any, times: ArrayLike) -> np.ndarray:
        digits = digits_of(check_times(times, horizon), arity, levels)
        return kind.variance(params) * (digits @ variances)

    def radius(params: Any, times: ArrayLike, failure_prob: ArrayLike) -> jax.Array:
        times = widen_index(jnp.asarray(times))
        powers = [arity**h for h in range(levels)]
        digits = jnp.stack([times // power % arity for power in powers], axis=-1).astype(default_float())
        if noise == "gaussian":
            return normal_radius(kind.scale(params, None) * jnp.sqrt(_dot(digits, variances)), failure_prob)
        return kind.scale(params, None) * chernoff(_dot(digits, cumulants), rates, failure_prob)

    if noise == "gaussian":
        functions = gaussian_tree(horizon, arity, variances)
        return Counter(kind.params, *functions, variance, radius, horizon)
    return Counter(kind.params, init, feed, read, prefixes, variance, radius, horizon)


def _dot(digits: jax.Array, table: np.ndarray) -> jax.Array:
    return jnp.matmul(digits, jnp.asarray(table, digits.dtype), precision="highest")

"""Tree arithmetic of counters: finds the blocks that end with an entry, and computes their estimates."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.mechanisms.continual_counting.counter import Exact, add_sums, spread, sum_along, zero_sums
from jaxdp.numerics.rounding import round_product


class Nodes(NamedTuple):
    """The blocks of a tree that make up the stream so far: at most arity - 1 at each level.

    Attributes:
        digits: [levels, *clocks] integers, number of blocks of each level.
        sums: [levels, *shape], for each level the exact sum of its blocks: integers, or sums in fixed point. Secret.
        estimates: [levels, *shape] float, for each level the sum of its blocks' noisy estimates.
    """

    digits: jax.Array
    sums: Any
    estimates: jax.Array


class Ended(NamedTuple):
    """The blocks that end with an entry: one of each level up to some level.

    Attributes:
        ends: [levels, *clocks] bool, whether a block of this level ends.
        top: [levels, *clocks] bool, whether the largest ending block is of this level.
        sums: [levels, *shape] the blocks' sums; 0 for levels without an ending block.
    """

    ends: jax.Array
    top: jax.Array
    sums: Any


def empty(levels: int, shape: tuple[int, ...], clocks: tuple[int, ...], dtype, floating) -> Nodes:
    """Returns the nodes of an empty stream."""
    return Nodes(
        digits=jnp.zeros((levels, *clocks), jnp.int32),
        sums=zero_sums((levels, *shape), dtype),
        estimates=jnp.zeros((levels, *shape), floating),
    )


def ending_blocks(nodes: Nodes, value: Exact, fed: jax.Array, arity: int) -> Ended:
    """Returns the blocks that end with this entry."""
    levels, ends, sums = len(nodes.digits), [fed], [value]
    for h in range(levels - 1):
        ends.append(ends[h] & (nodes.digits[h] == arity - 1))
        sums.append(add_sums(sums[h], jax.tree.map(lambda x, h=h: x[h], nodes.sums)))
    ends = jnp.stack(ends)
    mask = _spread(ends, nodes.estimates.shape[1:])
    return Ended(
        ends=ends,
        top=ends & ~jnp.concatenate([ends[1:], jnp.zeros_like(ends[:1])]),
        sums=jax.tree.map(lambda *level: jnp.where(mask, jnp.stack(level), 0), *sums),
    )


def combine_estimates(nodes: Nodes, noisy: jax.Array, variances: np.ndarray) -> jax.Array:
    """Returns the best linear estimate of each ended block's sum, [levels, *shape].

    The estimate is computed from the noisy sums of the block (`noisy`) and of the blocks inside it. `variances`,
    [levels], are the variances of these estimates, relative to the variance of one noisy sum.

    Source:
        Honaker (2015), from the leaves up.
    """
    estimates = [noisy[0]]
    for h in range(1, len(noisy)):
        children = nodes.estimates[h - 1] + estimates[h - 1]
        # not computed as a weighted mean: if both terms are equal, as without noise, the result must equal them
        estimates.append(noisy[h] + round_product(jnp.asarray(1 - variances[h], noisy.dtype) * (children - noisy[h])))
    return jnp.stack(estimates)


def advance(nodes: Nodes, ended_blocks: Ended, estimates: jax.Array) -> Nodes:
    """Returns the blocks after an entry: adds the largest ended block and removes the blocks inside it.

    Args:
        nodes: the blocks before.
        ended_blocks: the blocks that ended with the entry.
        estimates: [levels, *shape], used only at the level of the largest ended block.
    """
    inside = ended_blocks.ends & ~ended_blocks.top

    def update(previous: Any, ended: Any) -> Any:
        def choose(previous: jax.Array, both: jax.Array) -> jax.Array:
            rank = previous.shape[1:]
            return jnp.where(_spread(inside, rank), 0, jnp.where(_spread(ended_blocks.top, rank), both, previous))

        return jax.tree.map(choose, previous, add_sums(previous, ended))

    return Nodes(
        digits=update(nodes.digits, jnp.ones_like(nodes.digits)),
        sums=update(nodes.sums, ended_blocks.sums),
        estimates=update(nodes.estimates, estimates),
    )


def largest(ended_blocks: Ended) -> Exact:
    """Returns the sum of the largest ended block, [*shape]; 0 if none ended."""
    sums_of_top = jax.tree.map(
        lambda sums: jnp.where(_spread(ended_blocks.top, sums.shape[1:]), sums, 0), ended_blocks.sums
    )
    return sum_along(sums_of_top, 0)


def groups(blocks: jax.Array, arity: int) -> jax.Array:
    """Groups consecutive blocks ([n, ...]) by parent: [n // arity, arity, ...]; drops incomplete groups."""
    num_grouped = len(blocks) // arity * arity
    return blocks[:num_grouped].reshape(-1, arity, *blocks.shape[1:])


def before(blocks: jax.Array, arity: int) -> jax.Array:
    """Returns, for each block and at least one block more, the sum of the earlier blocks with the same parent."""
    groups = len(blocks) // arity + 1
    padded = jnp.zeros((groups * arity, *blocks.shape[1:]), blocks.dtype).at[: len(blocks)].set(blocks)
    inside = jnp.cumsum(padded.reshape(groups, arity, *blocks.shape[1:]), axis=1)
    shifted = jnp.concatenate([jnp.zeros_like(inside[:, :1]), inside[:, :-1]], axis=1)
    return shifted.reshape(padded.shape)


def _spread(per_level: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return spread(per_level, (len(per_level), *shape))

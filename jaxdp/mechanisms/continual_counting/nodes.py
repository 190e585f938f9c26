"""The arithmetic of trees that counters share: which blocks end with an entry, and what is known of them then."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.mechanisms.continual_counting.counter import Exact, joined, nothing, spread, summed
from jaxdp.numerics.rounding import rounded


class Nodes(NamedTuple):
    """The blocks of a tree that make up the stream so far: at most arity - 1 of a level.

    Attributes:
        digits: [levels, *clocks] integers, how many blocks of each level.
        sums: [levels, *shape], what they sum to: integers, or sums in fixed point. Secret.
        estimates: [levels, *shape] float, the sum of their noisy estimates.
    """

    digits: jax.Array
    sums: Any
    estimates: jax.Array


class Ended(NamedTuple):
    """What ends with an entry: a block of each level up to some one.

    Attributes:
        ends: [levels, *clocks] bool, whether a block of this level ends.
        top: the same, for the largest block that ends.
        sums: [levels, *shape] the blocks' sums; 0 where none ends.
    """

    ends: jax.Array
    top: jax.Array
    sums: Any


def empty(levels: int, shape: tuple[int, ...], clocks: tuple[int, ...], dtype, floating) -> Nodes:
    """A tree before its first entry."""
    return Nodes(
        digits=jnp.zeros((levels, *clocks), jnp.int32),
        sums=nothing((levels, *shape), dtype),
        estimates=jnp.zeros((levels, *shape), floating),
    )


def ended(nodes: Nodes, value: Exact, fed: jax.Array, arity: int) -> Ended:
    """What ends with an entry."""
    levels, ends, sums = len(nodes.digits), [fed], [value]
    for h in range(levels - 1):
        ends.append(ends[h] & (nodes.digits[h] == arity - 1))
        sums.append(joined(sums[h], jax.tree.map(lambda x, h=h: x[h], nodes.sums)))
    ends = jnp.stack(ends)
    mask = _spread(ends, nodes.estimates.shape[1:])
    return Ended(
        ends=ends,
        top=ends & ~jnp.concatenate([ends[1:], jnp.zeros_like(ends[:1])]),
        sums=jax.tree.map(lambda *level: jnp.where(mask, jnp.stack(level), 0), *sums),
    )


def combined(nodes: Nodes, noisy: jax.Array, variances: np.ndarray) -> jax.Array:
    """[levels, *shape] each ended block's best linear estimate from its own noisy sum and those of all blocks in it.

    Source:
        Honaker (2015), from the leaves up.
    """
    estimates = [noisy[0]]
    for h in range(1, len(noisy)):
        children = nodes.estimates[h - 1] + estimates[h - 1]
        # not a weighted mean: equal terms, as without noise, must give themselves
        estimates.append(noisy[h] + rounded(jnp.asarray(1 - variances[h], noisy.dtype) * (children - noisy[h])))
    return jnp.stack(estimates)


def advance(nodes: Nodes, done: Ended, estimates: jax.Array) -> Nodes:
    """The blocks after an entry: the largest that ended is new, those inside it are forgotten.

    Args:
        nodes: before.
        done: what ended.
        estimates: [levels, *shape], read where a block of that level is the largest that ended.
    """
    inside = done.ends & ~done.top

    def update(old: Any, new: Any) -> Any:
        def choose(old: jax.Array, both: jax.Array) -> jax.Array:
            rank = old.shape[1:]
            return jnp.where(_spread(inside, rank), 0, jnp.where(_spread(done.top, rank), both, old))

        return jax.tree.map(choose, old, joined(old, new))

    return Nodes(
        digits=update(nodes.digits, jnp.ones_like(nodes.digits)),
        sums=update(nodes.sums, done.sums),
        estimates=update(nodes.estimates, estimates),
    )


def largest(done: Ended) -> Exact:
    """[*shape] the sum of the largest block that ended; 0 where none did."""
    kept = jax.tree.map(lambda sums: jnp.where(_spread(done.top, sums.shape[1:]), sums, 0), done.sums)
    return summed(kept, 0)


def groups(blocks: jax.Array, arity: int) -> jax.Array:
    """[groups, arity, ...] the blocks by their parents, without those whose parent is not complete."""
    whole = len(blocks) // arity * arity
    return blocks[:whole].reshape(-1, arity, *blocks.shape[1:])


def before(blocks: jax.Array, arity: int) -> jax.Array:
    """For j = 0, 1, ... the sum of the blocks before the j-th that have the same parent."""
    groups = len(blocks) // arity + 1
    padded = jnp.zeros((groups * arity, *blocks.shape[1:]), blocks.dtype).at[: len(blocks)].set(blocks)
    inside = jnp.cumsum(padded.reshape(groups, arity, *blocks.shape[1:]), axis=1)
    shifted = jnp.concatenate([jnp.zeros_like(inside[:, :1]), inside[:, :-1]], axis=1)
    return shifted.reshape(padded.shape)


def _spread(per_level: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    return spread(per_level, (len(per_level), *shape))

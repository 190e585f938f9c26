"""The arithmetic of elimination in blocks: computes the effects of a block of duels, sweep by sweep (see `blocks`).

The last axis of arrays is the batch axis (lanes). There are few arms, so vector instructions work across lanes. The
axis `num_arms` has one entry for each column of a block (see `blocks.Columns`).
"""

import functools
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.dueling._ebs_elimination import arms as arms
from jaxdp.dueling._ebs_elimination import counters as counters
from jaxdp.dueling._ebs_elimination import kernels as kernels
from jaxdp.dueling._ebs_elimination.arms import Params
from jaxdp.dueling._ebs_elimination.counters import Trees
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.numerics.kernels import own_kernel, tree_reduce

CHAIN = 4  # number of successive sums in one kernel, which computes earlier sums again for each later sum
PACKED, BITS = 8, 4  # a 32-bit word holds the counts of 8 opponents, in 4 bits each (fewer than 16 duels)


class LeastPlayed(NamedTuple):
    """The least-played arms. They are on the left in turn, until another arm is a least-played arm too.

    Attributes:
        is_least: [num_arms, ...] bool, whether the arm is a least played arm.
        rank: [num_arms, ...] int32, the arm's rank among the least played arms.
        size: [1, ...] int32, the number of least played arms.
        length: [...] integer, rounds until another arm is a least played arm too, at most the rounds of a block.
    """

    is_least: jax.Array
    rank: jax.Array
    size: jax.Array
    length: jax.Array


class Block(NamedTuple):
    """The state at the start of a block, and the block's random draws. Shapes are for one lane.

    Attributes:
        params: the learner's parameters.
        squared_radius: [] float, `Params.squared_radius` for the number of active arms.
        active: [num_arms] bool.
        played: [num_arms] integers, number of duels of each arm, on the left, with active arms.
        nodes: [levels, num_arms], the counters, after the removals that followed the last drop.
        length: [] int32, number of rounds.
        won: [block] int32, users' answers.
        right: [block] int32, right arms.
        noise: [block] integers from `counters.draw`, the noise of the leaves.
        upper_noise: [levels - 1, num_arms] integers, the noise of inner nodes that may end.
    """

    params: Params
    squared_radius: jax.Array
    active: jax.Array
    played: jax.Array
    nodes: tree.Nodes
    length: jax.Array
    won: jax.Array
    right: jax.Array
    noise: jax.Array
    upper_noise: jax.Array


class Swept(NamedTuple):
    """The effects of a block, up to the first drop. Shapes are for one lane.

    Attributes:
        used: [] int32, rounds played, up to the first drop.
        dropped: [num_arms] bool, the arms that the last of these rounds drops.
        nodes: the counters after these rounds.
        plays: [words, num_arms] uint32, counts of duels for each left arm; a word contains the counts of at most 8
            right arms.
        wins: as `plays`, the counts of duels that the left arm won.
    """

    used: jax.Array
    dropped: jax.Array
    nodes: tree.Nodes
    plays: jax.Array
    wins: jax.Array

    @staticmethod
    def unpack_duels(words: jax.Array, num_opponents: int) -> jax.Array:
        """Unpacks words to counts ([num_arms, num_opponents]) for each left and right arm."""
        shifts = np.arange(min(PACKED, num_opponents), dtype=np.uint32) * np.uint32(BITS)
        counts = [(word[:, None] >> shifts[None, :]) & np.uint32(2**BITS - 1) for word in words]
        return jnp.concatenate(counts, axis=1)[:, :num_opponents]


class Levels(NamedTuple):
    """The sums of estimates above the leaves, and lines that bound counters' errors, [num_arms, lanes] float each.

    Attributes:
        upper: the sum of the estimates above the leaves.
        intercept: the intercept of the line that bounds a counter's error.
        slope: the slope of this line per leaf.
    """

    upper: jax.Array
    intercept: jax.Array
    slope: jax.Array


def schedule(active: jax.Array, played: jax.Array, num_sweeps: int) -> LeastPlayed:
    """Determines which arms are next on the left. Inputs are [num_arms] or [num_arms, lanes]."""
    largest = jnp.iinfo(played.dtype).max
    least = _over_arms(jnp.minimum, jnp.where(active, played, largest))
    is_least = active & (played == least)
    ahead = _over_arms(jnp.minimum, jnp.where(active & (played > least), played - least, num_sweeps))
    size, rank = jnp.zeros_like(least, jnp.int32), []
    for arm in range(len(played)):  # unrolled: XLA vectorises elementwise operations, but not cumulative ones
        rank.append(size)
        size = size + is_least[arm : arm + 1].astype(jnp.int32)
    length = jnp.minimum(ahead, num_sweeps) * size.astype(played.dtype)
    return LeastPlayed(is_least, jnp.concatenate(rank), size, length[0])


def sweep_arms(trees: Trees, num_opponents: int, block: Block) -> Swept:
    """Computes the effects of a block, up to the first drop; the last axis of all arrays is the batch axis.

    The left arms are the arms of the block's columns. The right arms are numbers of arms, below `num_opponents`.
    """
    num_arms, lanes = block.active.shape
    num_sweeps = len(block.noise) // num_arms
    rows = (num_sweeps, num_arms, lanes)
    params = jax.tree.map(lambda leaf: leaf[..., None, :], block.params)
    squared, length = block.squared_radius[None], block.length[None]
    least_played = schedule(block.active, block.played, num_sweeps)
    nodes = block.nodes
    sweeps = np.arange(num_sweeps, dtype=np.int32)[:, None, None]
    last = trees.arity - nodes.digits[0]  # number of entries until a node above the leaves ends
    ends = least_played.is_least & (last <= num_sweeps) & (least_played.rank + (last - 1) * least_played.size < length)

    def entries(noise, won, least_played: LeastPlayed, length, params):
        slot = sweeps * least_played.size[None] + least_played.rank[None]
        is_played = least_played.is_least[None] & (slot < length[None])
        won = jnp.where(is_played, jnp.clip(won, 0, 1), 0).astype(nodes.sums.dtype)
        params = jax.tree.map(lambda leaf: leaf[None], params)
        return won, jnp.where(is_played, counters.add_rounded_noise(trees, params, won, noise), 0)

    won, leaf = own_kernel(entries, block.noise.reshape(rows), block.won.reshape(rows), least_played, length, params)
    leaves = _leaves(nodes.estimates[0], leaf, last, ends)
    after = _inner_nodes(trees, params, nodes, block.upper_noise, (won, leaf, leaves), last, ends)
    levels = _levels(trees, params, nodes), _levels(trees, params, after)
    low, high = own_kernel(
        _intervals, squared, block.active, block.played, nodes, leaves, last, ends, least_played, levels
    )
    first = own_kernel(_first_drop, low, high, least_played)
    used = jnp.minimum(first + 1, length)

    counts = jnp.clip(
        (used - least_played.rank + least_played.size - 1) // jnp.maximum(least_played.size, 1), 0, num_sweeps
    )
    counts = jnp.where(least_played.is_least, counts, 0)
    done = ends & (counts >= last)
    since = jnp.where(done, last, 0)

    def finish(won, leaves, since, counts, done, nodes: tree.Nodes, after: tree.Nodes):
        digits, sums, estimates = (
            jnp.where(done[None], finished, unfinished) for finished, unfinished in zip(after, nodes, strict=True)
        )
        return tree.Nodes(
            digits.at[0].add(counts - since),
            sums.at[0].add(_sum_rows(won, since, counts)),
            estimates.at[0].set(_at(leaves, counts)),
        )

    end = own_kernel(finish, won, leaves, since, counts, done, nodes, after)
    played = block.played + counts.astype(block.played.dtype)
    dropped = own_kernel(_drop_arms, squared, block.active, played, end, done, levels)
    words = functools.partial(_by_opponent, num_opponents)
    plays, wins = own_kernel(words, block.right.reshape(rows), won, counts)
    return Swept(used[0], dropped, end, plays, wins)


def _drop_arms(
    squared: jax.Array,
    active: jax.Array,
    played: jax.Array,
    nodes: tree.Nodes,
    done: jax.Array,
    levels: tuple[Levels, Levels],
) -> jax.Array:
    """Returns, for each arm, whether the bounds at the end of the block drop it.

    The result is [num_arms, lanes] bool.
    """
    level = Levels(*(jnp.where(done, after, before) for before, after in zip(*levels, strict=True)))
    low, high = arms.interval(
        squared,
        level.upper + nodes.estimates[0],
        played,
        level.intercept + level.slope * nodes.digits[0].astype(level.slope.dtype),
    )
    return active & (high < _over_arms(jnp.maximum, jnp.where(active, low, -jnp.inf)))


def _intervals(
    squared: jax.Array,
    active: jax.Array,
    played: jax.Array,
    nodes: tree.Nodes,
    leaves: jax.Array,
    last: jax.Array,
    ends: jax.Array,
    least_played: LeastPlayed,
    levels: tuple[Levels, Levels],
) -> tuple[jax.Array, jax.Array]:
    """Returns lower and upper bounds on scores after 0, 1, ... sweeps, [sweeps + 1, num_arms, lanes] each."""
    steps = jnp.where(least_played.is_least[None], np.arange(len(leaves), dtype=np.int32)[:, None, None], 0)
    past = ends[None] & (steps >= last[None])
    upper, intercept, slope = (
        jnp.where(past, after[None], before[None]) for before, after in zip(*levels, strict=True)
    )
    digit = jnp.where(past, -last[None], nodes.digits[0][None]) + steps
    low, high = arms.interval(
        squared[None],
        upper + leaves,
        played[None] + steps.astype(played.dtype),
        intercept + slope * digit.astype(slope.dtype),
    )
    return jnp.where(active[None], low, -jnp.inf), jnp.where(active[None], high, jnp.inf)


def _first_drop(low: jax.Array, high: jax.Array, least_played: LeastPlayed) -> jax.Array:
    """Returns the first round, from 0, that drops an arm, or num_sweeps * num_arms if none does.

    The result is [1, lanes] int32.
    """
    num_sweeps, num_arms, lanes = len(low) - 1, *low.shape[1:]
    # After an arm was on the left in a sweep, this arm and the arms before it have this sweep's bounds, and the arms
    # after it have the previous sweep's bounds.
    highest, lowest = (
        _windows(operation, ends.reshape(-1, lanes), num_arms)
        for operation, ends in ((jnp.maximum, low), (jnp.minimum, high))
    )
    slot = np.arange(num_sweeps, dtype=np.int32)[:, None, None] * least_played.size[None] + least_played.rank[None]
    drops = least_played.is_least[None] & (lowest < highest).reshape(-1, num_arms, lanes)
    return tree_reduce(jnp.minimum, jnp.where(drops, slot, num_sweeps * num_arms).reshape(-1, lanes))[None]


def _windows(operation, values: jax.Array, size: int) -> jax.Array:
    """Reduces each window of `size` consecutive rows, except the first window, by `jnp.maximum` or `jnp.minimum`."""
    width = 1
    while 2 * width <= size:
        values = operation(values[width:], values[:-width])
        width *= 2
    shift = size - width
    return (operation(values[shift:], values[: len(values) - shift]) if shift else values)[1:]


def _leaves(start: jax.Array, leaf: jax.Array, last: jax.Array, ends: jax.Array) -> jax.Array:
    """Sums, after 0, 1, ... sweeps, the leaves that no ended node contains: [sweeps + 1, num_arms, lanes] float."""

    # Leaves are added one by one, as in single rounds: after a drop an entry may be so large that the order matters.
    def add_leaves(start: jax.Array, leaf: jax.Array, entries_left: jax.Array, ends: jax.Array) -> jax.Array:
        rows = [start]
        for sweep in range(len(leaf)):
            rows.append(jnp.where(ends & (entries_left == sweep + 1), 0, rows[-1] + leaf[sweep]))
        return jnp.stack(rows[1:])

    rows = [start[None]]
    for first in range(0, len(leaf), CHAIN):
        rows.append(own_kernel(add_leaves, rows[-1][-1], leaf[first : first + CHAIN], last - first, ends))
    return jnp.concatenate(rows)


def _inner_nodes(
    trees: Trees, params: Params, nodes: tree.Nodes, upper_noise: jax.Array, entries: tuple[jax.Array, ...], last, ends
) -> tree.Nodes:
    """Returns the counters right after the entry that ends an inner node, for counters with such an entry."""
    # `nodes` are the counters before the block. `entries` has, for each sweep, the exact entries, the noisy entries,
    # and the sums of leaves. For each arm and lane, `last` is the number of the entry that ends a node, and `ends`
    # whether a node ends.

    def read(won, leaf, leaves, last):
        return _sum_rows(won, jnp.zeros_like(last), last), _at(leaf, last - 1), _at(leaves[:-1], last - 1)

    def nodes_after(params, nodes: tree.Nodes, upper_noise, last, ends, won, leaf, leaves):
        before = nodes._replace(
            digits=nodes.digits.at[0].set(jnp.where(ends, trees.arity - 1, nodes.digits[0])),
            estimates=nodes.estimates.at[0].set(leaves),
        )
        done = tree.ending_blocks(before, won, ends, trees.arity)
        values = leaf[None]
        if trees.levels > 1:
            params = jax.tree.map(lambda leaf: leaf[None], params)
            values = jnp.concatenate([values, counters.add_rounded_noise(trees, params, done.sums[1:], upper_noise)])
        return tree.advance(before, done, tree.combine_estimates(before, values, trees.variances))

    return own_kernel(nodes_after, params, nodes, upper_noise, last, ends, *own_kernel(read, *entries, last))


def _levels(trees: Trees, params: Params, nodes: tree.Nodes) -> Levels:
    def compute(params, digits, estimates):
        return Levels(counters.sum_upper_levels(estimates), *kernels.noise_line(trees, params, digits))

    return own_kernel(compute, params, nodes.digits, nodes.estimates)


def _by_opponent(
    num_opponents: int, right: jax.Array, won: jax.Array, counts: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Counts the duels of each two arms, and the wins of the left arm, [words, num_arms, lanes] uint32 each."""
    num_sweeps = len(won)
    plays, wins = [], []
    for word in range(-(-num_opponents // PACKED)):
        total = won_total = jnp.zeros(won.shape[1:], jnp.uint32)
        for sweep in range(num_sweeps):
            index = right[sweep] - word * PACKED
            is_in_word = (sweep < counts) & (index >= 0) & (index < PACKED)
            one = jnp.where(is_in_word, jnp.uint32(1) << (BITS * jnp.clip(index, 0, PACKED - 1)).astype(jnp.uint32), 0)
            total, won_total = total + one, won_total + jnp.where(won[sweep] > 0, one, 0)
        plays.append(total)
        wins.append(won_total)
    return jnp.stack(plays), jnp.stack(wins)


def _over_arms(operation, values: jax.Array) -> jax.Array:
    """Reduces the first axis of `values`, over arms, to length 1 by an operation on two arrays."""
    reduced = values[:1]  # unrolled: XLA vectorises elementwise operations, but not reductions
    for arm in range(1, len(values)):
        reduced = operation(reduced, values[arm : arm + 1])
    return reduced


def _sum_rows(values: jax.Array, start: jax.Array, stop: jax.Array) -> jax.Array:
    """Sums the rows from `start` to before `stop`, both [num_arms, lanes]."""
    total = jnp.zeros_like(values[0])
    for sweep in range(len(values)):
        total = total + jnp.where((start <= sweep) & (sweep < stop), values[sweep], 0)
    return total


def _at(rows: jax.Array, index: jax.Array) -> jax.Array:
    """Returns, for each arm and lane, the entry of `rows` at `index` in the first axis; 0 if there is no such row."""
    selected = jnp.zeros_like(rows[0])
    for row in range(len(rows)):
        selected = jnp.where(index == row, rows[row], selected)
    return selected

"""Elimination by effective Borda scores many rounds at a time, with the results of single rounds bit for bit."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.dueling import ebs_arms as arms
from jaxdp.dueling.ebs_arms import Params, Private, Public, Trees
from jaxdp.kernels import own_kernel
from jaxdp.learner import BlockPlan, Blocks, State
from jaxdp.mechanisms.continual_counting import nodes as tree

SWEEPS = 16
PACKED, BITS = 3, 8  # counts of so many opponents share a word


class Sweeps(NamedTuple):
    """The least played arms, which duel in turn until another arm is among them.

    Attributes:
        turns: [num_arms] bool, whether the arm is one of them.
        rank: [num_arms] int32, its place among them.
        size: [] int32, how many they are.
        length: [] integer, rounds until there are more, at most those of a block.
    """

    turns: jax.Array
    rank: jax.Array
    size: jax.Array
    length: jax.Array

    def place(self, sweep) -> jax.Array:
        """[..., num_arms] int32, which round is an arm's duel in a sweep; meaningless for an arm without turns."""
        return sweep * self.size + jnp.broadcast_to(self.rank, jnp.broadcast_shapes(self.rank.shape, jnp.shape(sweep)))


class Entries(NamedTuple):
    """What a block's duels bring, by sweep and left arm.

    Attributes:
        now: whose turn it is.
        played: [num_arms] integer, duels of the arms before.
        place: [sweeps * num_arms] int32, which round such a duel is; beyond all rounds if there is none.
        won: [sweeps, num_arms] integer in {0, 1}; 0 where there is none.
        leaf: [sweeps, num_arms] float, the noisy entry; 0 where there is none.
        last: [num_arms] int32, entries until a node above the leaves ends.
        ends: [num_arms] bool, whether it ends in this block.
    """

    now: Sweeps
    played: jax.Array
    place: jax.Array
    won: jax.Array
    leaf: jax.Array
    last: jax.Array
    ends: jax.Array

    def entered(self, values: jax.Array, start: jax.Array, stop: jax.Array) -> jax.Array:
        """[num_arms] sums of rows from `start` [num_arms] on, before `stop`: exact in any order, as on a lattice."""
        total = jnp.zeros_like(values[0])
        for sweep in range(len(values)):  # written out: elementwise operations vectorise, reductions do not
            total = total + jnp.where((start <= sweep) & (sweep < stop), values[sweep], 0)
        return total


class Levels(NamedTuple):
    """What is known of counters besides their leaves, each [num_arms] float.

    Attributes:
        upper: sum of the estimates above the leaves.
        intercept: of the bound on a counter's error.
        slope: of that bound, by leaves.
    """

    upper: jax.Array
    intercept: jax.Array
    slope: jax.Array


def elimination_blocks(trees: Trees, num_arms: int) -> Blocks:
    """Blocks of at most as many sweeps over the arms as a counter has entries in its smallest inner node.

    Until an arm is dropped, arms take turns on the left. A block has a place for each sweep and arm, in this order; the
    places of arms without turns stay empty. A counter's clock ends at most one inner node on the way, with all those
    above it.

    Args:
        trees: of the counters.
        num_arms: >= 2.
    """
    num_sweeps = min(SWEEPS, trees.arity)
    block = num_sweeps * num_arms
    every = np.arange(num_arms, dtype=np.int32)
    sweeps = np.arange(num_sweeps, dtype=np.int32)[:, None]
    natural = np.arange(block, dtype=np.int32)

    def schedule(public: Public, played: jax.Array) -> Sweeps:
        least = jnp.min(jnp.where(public.active, played, jnp.iinfo(played.dtype).max))
        turns = public.active & (played == least)
        others = public.active & (played > least)
        ahead = jnp.min(jnp.where(others, played - least, num_sweeps))
        size = jnp.sum(turns, dtype=jnp.int32)
        length = jnp.minimum(ahead, num_sweeps) * size.astype(played.dtype)
        return Sweeps(turns, jnp.cumsum(turns, dtype=jnp.int32) - 1, size, length)

    def order(params: Params, public: Public) -> jax.Array:
        del params

        def places(now: Sweeps, alone):
            return jnp.where(alone, natural, jnp.where(now.turns[None, :], now.place(sweeps), block).ravel())

        return own_kernel(places, schedule(public, arms.duels(public)), _alone(public))

    def plan(keys, params: Params, public: Public, limit) -> BlockPlan:
        del params
        alone = _alone(public)
        length = schedule(public, arms.duels(public)).length.astype(limit.dtype)
        left = jnp.where(alone, jnp.argmax(public.active).astype(jnp.int32), np.tile(every, num_sweeps))
        return BlockPlan(
            jnp.stack([left, own_kernel(arms.opponents, keys, public.active)], axis=-1),
            jnp.where(alone, limit, jnp.minimum(limit, length)),
        )

    def privatize(keys, params: Params, public: Public, plan: BlockPlan, feedback):
        del keys, params, public
        return plan.actions, feedback

    def entries(keys, params: Params, public: Public, nodes: tree.Nodes, length: jax.Array, feedback) -> Entries:
        played = arms.duels(public)
        now, length = schedule(public, played), length.astype(jnp.int32)
        place = order(params, public)
        noise = jax.vmap(lambda key: arms.draw(trees, jax.random.fold_in(key, arms.LEAF), params, (1,))[0])(keys)

        def leaves(noise, feedback, place, length, params):
            won = jnp.where(place < length, jnp.clip(feedback, 0, 1), 0).astype(played.dtype)
            return won, jnp.where(place < length, arms.noisy(params, won, noise), 0)

        # Flat: where the fast axis is as short as the arms, XLA on CPU computes one by one.
        won, leaf = own_kernel(leaves, noise, feedback, place, length, params)
        last = trees.arity - nodes.digits[0]
        ends = now.turns & (last <= num_sweeps) & (now.place(last - 1) < length)
        rows = (num_sweeps, num_arms)
        return Entries(now, played, place, won.reshape(rows), leaf.reshape(rows), last, ends)

    def nothing_drops(params: Params, public: Public, what: Entries, levels: tuple[Levels, Levels], nodes) -> jax.Array:
        """Whether bounds of all intervals of the block say so. Rounding is monotone: they hold as computed."""
        low, high = own_kernel(bounds, _squared(params, public), what, levels, nodes)
        return jnp.min(jnp.where(public.active, high, jnp.inf)) >= jnp.max(jnp.where(public.active, low, -jnp.inf))

    def bounds(squared: jax.Array, what: Entries, levels: tuple[Levels, Levels], nodes: tree.Nodes):
        """Above all low ends of the arms' intervals in a block, and below all high ends."""
        before, after = levels
        leaf, above = nodes.estimates[0], before.upper
        smallest = largest = above + leaf
        for sweep in range(num_sweeps):
            past = what.ends & (sweep + 1 >= what.last)
            leaf = jnp.where(what.ends & (sweep + 1 == what.last), 0, leaf + what.leaf[sweep])
            estimate = jnp.where(past, after.upper, before.upper) + leaf
            smallest, largest = jnp.minimum(smallest, estimate), jnp.maximum(largest, estimate)
        noise = before.intercept + before.slope * nodes.digits[0].astype(before.slope.dtype)
        noise = jnp.where(what.ends, jnp.minimum(noise, after.intercept), noise)
        n = what.played.astype(leaf.dtype)
        radius = jnp.sqrt(squared * n) + noise
        most, least = 1 / jnp.maximum(n, 1), 1 / (n + num_sweeps)
        low, high = largest - radius, smallest + radius
        return jnp.maximum(low * most, low * least), jnp.minimum(high * most, high * least)

    def first_drop(params: Params, public: Public, what: Entries, levels: tuple[Levels, Levels], nodes) -> jax.Array:
        """[] int32, the first round after which an arm is dropped; else the block's length."""
        now = what.now
        steps = jnp.where(now.turns[None, :], np.arange(num_sweeps + 1, dtype=np.int32)[:, None], 0)
        leaves = _totals(what.leaf)  # rows from here on: after 0, 1, ... of the sweeps
        past = what.ends[None, :] & (steps >= what.last[None, :])
        ended = what.entered(what.leaf, jnp.zeros_like(what.last), what.last)
        leaf = jnp.where(past, leaves - ended[None, :], nodes.estimates[0][None, :] + leaves)
        upper, intercept, slope = (jnp.where(past, b[None, :], a[None, :]) for a, b in zip(*levels, strict=True))
        digit = jnp.where(past, -what.last[None, :], nodes.digits[0][None, :]) + steps
        low, high = arms.interval(
            _squared(params, public),
            upper + leaf,
            what.played[None, :] + steps.astype(what.played.dtype),
            intercept + slope * digit.astype(slope.dtype),
        )
        low = jnp.where(public.active[None, :], low, -jnp.inf)
        high = jnp.where(public.active[None, :], high, jnp.inf)
        highest, lowest = jnp.full(sweeps.shape, -jnp.inf, low.dtype), jnp.full(sweeps.shape, jnp.inf, low.dtype)
        for arm in range(num_arms):
            sooner = now.rank[arm] <= now.rank[None, :]  # has had its turn in this sweep
            highest = jnp.maximum(highest, jnp.where(sooner, low[1:, arm : arm + 1], low[:-1, arm : arm + 1]))
            lowest = jnp.minimum(lowest, jnp.where(sooner, high[1:, arm : arm + 1], high[:-1, arm : arm + 1]))
        return jnp.min(jnp.where((lowest < highest).ravel(), what.place, block))

    def duel(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        public, private = state.public, state.private
        actions, feedback = report
        nodes = _while_any(
            public.dropped.any(),
            lambda place: arms.remove(trees, keys[place], params, public, private),
            jnp.argmax(order(params, public) == 0),
            tree.Nodes(public.digits, private.sums, public.estimates),
        )
        what = entries(keys, params, public, nodes, plan.length, feedback)
        after = _inner_nodes(trees, keys, params, nodes, what)
        levels = _levels(trees, params, nodes), _levels(trees, params, after)
        first = _while_any(
            ~nothing_drops(params, public, what, levels, nodes),
            lambda inputs: first_drop(params, public, *inputs),
            (what, levels, nodes),
            jnp.asarray(block, jnp.int32),
        )
        used = jnp.minimum(first + 1, plan.length.astype(jnp.int32))

        mine = what.place < used
        counts = jnp.clip((used - what.now.rank + what.now.size - 1) // jnp.maximum(what.now.size, 1), 0, num_sweeps)
        counts = jnp.where(what.now.turns, counts, 0)
        done = what.ends & (counts >= what.last)
        since = jnp.where(done, what.last, 0)
        total, leaves = (what.entered(values, since, counts) for values in (what.won, what.leaf))
        sums, digits, estimates = (
            jnp.where(done, new, old) for new, old in zip(_fields(after), _fields(nodes), strict=True)
        )
        sums = sums.at[0].set(jnp.where(done, 0, nodes.sums[0]) + total)
        digits = digits.at[0].set(jnp.where(done, 0, nodes.digits[0]) + counts - since)
        estimates = estimates.at[0].set(jnp.where(done, 0, nodes.estimates[0]) + leaves)
        level = Levels(*(jnp.where(done, new, old) for old, new in zip(*levels, strict=True)))
        low, high = arms.interval(
            _squared(params, public),
            level.upper + estimates[0],
            what.played + counts.astype(what.played.dtype),
            level.intercept + level.slope * digits[0].astype(level.slope.dtype),
        )
        dropped = public.active & (high < jnp.max(jnp.where(public.active, low, -jnp.inf)))
        right = jnp.where(mine, actions[:, 1], num_arms)
        plays = public.plays + _by_opponent(right, num_sweeps, num_arms).astype(public.plays.dtype)
        right = jnp.where(what.won.ravel() > 0, right, num_arms)
        wins = private.wins + _by_opponent(right, num_sweeps, num_arms).astype(private.wins.dtype)
        public = Public(public.active & ~dropped, dropped, plays, digits, estimates)
        return State(Private(wins, sums), public), used.astype(plan.length.dtype)

    def absorb(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        return jax.lax.cond(
            _alone(state.public), lambda: (state, plan.length), lambda: duel(keys, params, state, plan, report)
        )

    return Blocks(block, plan, privatize, absorb, order)


def _alone(public: Public) -> jax.Array:
    return jnp.sum(public.active, dtype=jnp.int32) == 1


def _squared(params: Params, public: Public) -> jax.Array:
    return jnp.asarray(params.squared_radius)[jnp.sum(public.active, dtype=jnp.int32)]


def _fields(nodes: tree.Nodes) -> tuple[jax.Array, jax.Array, jax.Array]:
    return nodes.sums, nodes.digits, nodes.estimates


def _levels(trees: Trees, params: Params, nodes: tree.Nodes) -> Levels:
    def compute(params, digits, estimates):
        return Levels(arms.upper(estimates), *arms.noise_line(trees, params, digits))

    return own_kernel(compute, params, nodes.digits, nodes.estimates)


def _while_any(needed: jax.Array, compute, inputs, otherwise):
    """compute(inputs) if it is needed. A loop, not a branch, which a batch of lanes enters if one of them needs it."""

    def body(carry):
        # Bound to the carry: else XLA would move what it computes out of the loop, and so compute it always.
        _, held = jax.lax.optimization_barrier((carry[0], inputs))
        return jnp.zeros((), bool), compute(held)

    return jax.lax.while_loop(lambda carry: carry[0], body, (needed, otherwise))[1]


def _inner_nodes(trees: Trees, keys, params: Params, nodes: tree.Nodes, what: Entries) -> tree.Nodes:
    """The counters right after the entry that ends an inner node, where one ends."""
    first = jnp.zeros_like(what.last)
    won, leaf = (what.entered(values, first, what.last - 1) for values in (what.won, what.leaf))
    ending_won, ending_leaf = (what.entered(values, what.last - 1, what.last) for values in (what.won, what.leaf))
    before = tree.Nodes(
        nodes.digits.at[0].set(jnp.where(what.ends, trees.arity - 1, nodes.digits[0])),
        nodes.sums.at[0].add(won),
        nodes.estimates.at[0].add(leaf),
    )
    done = tree.ended(before, ending_won, what.ends, trees.arity)
    values = ending_leaf[None]
    if trees.levels > 1:
        num_sweeps, num_arms = what.won.shape
        row = jnp.clip(what.last - 1, 0, num_sweeps - 1)

        def draw(key):
            return arms.draw(trees, key, params, (trees.levels - 1, 1))[:, 0]

        # Of all rounds: XLA on CPU vectorises many hashes better than few.
        upper = jax.vmap(lambda key: jax.random.fold_in(key, arms.UPPER))(keys)
        noise = jax.vmap(draw, out_axes=1)(
            upper[row.astype(jnp.int32) * num_arms + jnp.arange(num_arms, dtype=jnp.int32)]
        )
        larger = own_kernel(lambda params, sums, noise: arms.noisy(params, sums, noise), params, done.sums[1:], noise)
        values = jnp.concatenate([values, larger])
    return tree.advance(before, done, tree.combined(before, values, trees.variances))


def _by_opponent(right: jax.Array, num_sweeps: int, num_arms: int) -> jax.Array:
    """[num_arms, num_arms] int32, how often arms met; `right` is num_arms where there is no duel.

    Counts of several opponents share a word: at most 255 sweeps.
    """
    columns = []
    for word in range(-(-num_arms // PACKED)):
        place = right - word * PACKED
        here = (place >= 0) & (place < PACKED) & (right < num_arms)
        packed = jnp.where(here, jnp.left_shift(1, BITS * jnp.clip(place, 0, PACKED - 1)), 0)
        rows = own_kernel(lambda packed: packed, packed).reshape(num_sweeps, num_arms)
        total = rows[0]
        for sweep in range(1, num_sweeps):
            total = total + rows[sweep]
        shifts = BITS * np.arange(min(PACKED, num_arms - word * PACKED), dtype=np.int32)
        columns.append((total[:, None] >> shifts[None, :]) & (2**BITS - 1))
    return jnp.concatenate(columns, axis=1)


def _totals(rows: jax.Array) -> jax.Array:
    """Sums of the first 0, 1, ... rows; they are exact, as numbers of one lattice are, in any order."""
    lower = np.tri(len(rows) + 1, len(rows), -1)
    return jnp.matmul(jnp.asarray(lower, rows.dtype), rows, precision="highest")

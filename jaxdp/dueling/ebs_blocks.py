"""Elimination by effective Borda scores many rounds at a time, with the results of single rounds bit for bit."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.dueling import ebs_arms as arms
from jaxdp.dueling.ebs_arms import Params, Private, Public, Trees
from jaxdp.learner import BlockPlan, Blocks, State
from jaxdp.mechanisms.continual_counting import nodes as tree

SWEEPS = 16


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


def elimination_blocks(trees: Trees, num_arms: int) -> Blocks:
    """Blocks of at most as many sweeps over the arms as a counter has entries in its smallest inner node.

    Until an arm is dropped, arms take turns on the left; so all entries of a block's counters are arrays of sweeps and
    arms. A counter's clock ends at most one inner node on the way, with all those above it.

    Args:
        trees: of the counters.
        num_arms: >= 2.
    """
    num_sweeps = min(SWEEPS, trees.arity)
    block = num_sweeps * num_arms
    every = np.arange(num_arms, dtype=np.int32)
    sweeps = np.arange(num_sweeps, dtype=np.int32)[:, None]
    turn = np.arange(block) % np.maximum(np.arange(num_arms + 1), 1)[:, None]  # [size, round] whose turn it is

    def schedule(public: Public, played: jax.Array) -> Sweeps:
        least = jnp.min(jnp.where(public.active, played, jnp.iinfo(played.dtype).max))
        turns = public.active & (played == least)
        others = public.active & (played > least)
        ahead = jnp.min(jnp.where(others, played - least, num_sweeps))
        size = jnp.sum(turns, dtype=jnp.int32)
        length = jnp.minimum(ahead, num_sweeps) * size.astype(played.dtype)
        return Sweeps(turns, jnp.cumsum(turns, dtype=jnp.int32) - 1, size, length)

    def plan(keys, params: Params, public: Public, limit) -> BlockPlan:
        del params
        alone = jnp.sum(public.active, dtype=jnp.int32) == 1
        now = schedule(public, arms.duels(public))
        left = arms.in_order(now.turns)[jnp.asarray(turn)[now.size]]
        return BlockPlan(
            jnp.stack([left, arms.opponents(keys, public.active)], axis=-1),
            jnp.where(alone, limit, jnp.minimum(limit, now.length.astype(limit.dtype))),
        )

    def privatize(keys, params: Params, public: Public, plan: BlockPlan, feedback):
        del keys, params, public
        return plan.actions, feedback

    def duel(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        public, private = state.public, state.private
        actions, feedback = report
        integer = private.wins.dtype
        nodes = _removed(trees, keys[0], params, public, private)
        played = arms.duels(public)
        now = schedule(public, played)

        noise = jax.vmap(lambda key: arms.draw(trees, jax.random.fold_in(key, arms.LEAF), params, (1,))[0])(keys)
        won = jnp.clip(feedback, 0, 1).astype(integer)
        place = sweeps * now.size + now.rank[None, :]  # of a sweep's duel of an arm among the rounds
        planned = now.turns[None, :] & (place < plan.length.astype(jnp.int32))
        where = jnp.clip(place, 0, block - 1)
        won_at = jnp.where(planned, won[where], 0)
        leaf_at = jnp.where(planned, arms.noisy(params, won, noise)[where], 0)
        right_at = actions[:, 1][where]

        # Rows from here on: after 0, 1, ... of the sweeps.
        leaves, entries = _totals(leaf_at), _totals(won_at.astype(leaf_at.dtype)).astype(integer)
        steps = jnp.where(now.turns[None, :], np.arange(num_sweeps + 1, dtype=np.int32)[:, None], 0)
        last = trees.arity - nodes.digits[0]  # steps to the end of an inner node
        ends = (last <= num_sweeps) & _at(planned, last - 1, False)
        after = _inner_nodes(trees, keys, params, nodes, ends, last, place, leaf_at, won_at)
        past = ends[None, :] & (steps >= last[None, :])
        leaf = jnp.where(past, leaves - _at(leaves, last, 0)[None, :], nodes.estimates[0][None, :] + leaves)

        def level(first: jax.Array, second: jax.Array) -> jax.Array:
            return jnp.where(past, second[None, :], first[None, :])

        lines = [arms.noise_line(trees, params, digits) for digits in (nodes.digits, after.digits)]
        intercept, slope = (level(first, second) for first, second in zip(*lines, strict=True))
        digit = level(nodes.digits[0], -last) + steps
        low, high = arms.interval(
            jnp.asarray(params.squared_radius)[jnp.sum(public.active, dtype=jnp.int32)],
            level(arms.upper(nodes.estimates), arms.upper(after.estimates)) + leaf,
            played[None, :] + steps.astype(played.dtype),
            intercept + slope * digit.astype(slope.dtype),
        )
        low = jnp.where(public.active[None, :], low, -jnp.inf)
        high = jnp.where(public.active[None, :], high, jnp.inf)
        highest, lowest = jnp.full(place.shape, -jnp.inf, low.dtype), jnp.full(place.shape, jnp.inf, low.dtype)
        for arm in range(num_arms):
            sooner = now.rank[arm] <= now.rank[None, :]  # has had its turn in this sweep
            highest = jnp.maximum(highest, jnp.where(sooner, low[1:, arm : arm + 1], low[:-1, arm : arm + 1]))
            lowest = jnp.minimum(lowest, jnp.where(sooner, high[1:, arm : arm + 1], high[:-1, arm : arm + 1]))
        first = jnp.min(jnp.where(planned & (lowest < highest), place, block))
        used = jnp.minimum(first + 1, plan.length.astype(jnp.int32))

        mine = planned & (place < used)
        counts = jnp.sum(mine, axis=0, dtype=jnp.int32)
        low, high = _at(low, counts, 0), _at(high, counts, 0)
        dropped = public.active & (high < low.max())
        done = ends & (counts >= last)
        total = _at(entries, counts, 0)
        sums = jnp.where(done, after.sums, nodes.sums)
        digits = jnp.where(done, after.digits, nodes.digits)
        estimates = jnp.where(done, after.estimates, nodes.estimates)
        pair = (right_at[:, :, None] == every[None, None, :]) & mine[:, :, None]
        return State(
            Private(
                private.wins + jnp.sum(jnp.where(pair, won_at[:, :, None], 0), axis=0, dtype=integer),
                sums.at[0].set(jnp.where(done, total - _at(entries, last, 0), nodes.sums[0] + total)),
            ),
            Public(
                public.active & ~dropped,
                dropped,
                public.plays + jnp.sum(pair, axis=0, dtype=integer),
                digits.at[0].set(jnp.where(done, counts - last, nodes.digits[0] + counts)),
                estimates.at[0].set(_at(leaf, counts, 0)),
            ),
        ), used.astype(plan.length.dtype)

    def absorb(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        return jax.lax.cond(
            jnp.sum(state.public.active, dtype=jnp.int32) > 1,
            lambda: duel(keys, params, state, plan, report),
            lambda: (state, plan.length),
        )

    return Blocks(block, plan, privatize, absorb)


def _removed(trees: Trees, key: jax.Array, params: Params, public: Public, private: Private) -> tree.Nodes:
    """A loop, not a branch: a batch of lanes goes without it unless one of them has dropped an arm."""
    nodes = tree.Nodes(public.digits, private.sums, public.estimates)
    return jax.lax.while_loop(
        lambda carry: carry[0],
        lambda carry: (jnp.zeros((), bool), arms.remove(trees, key, params, public, private)),
        (public.dropped.any(), nodes),
    )[1]


def _inner_nodes(trees, keys, params, nodes, ends, last, place, leaf_at, won_at) -> tree.Nodes:
    """The counters right after the entry that ends an inner node, where one ends."""
    sooner = np.arange(len(leaf_at), dtype=np.int32)[:, None] < last[None, :] - 1
    before = tree.Nodes(
        nodes.digits.at[0].set(jnp.where(ends, trees.arity - 1, nodes.digits[0])),
        nodes.sums.at[0].add(jnp.sum(jnp.where(sooner, won_at, 0), axis=0, dtype=won_at.dtype)),
        nodes.estimates.at[0].add(jnp.sum(jnp.where(sooner, leaf_at, 0), axis=0)),
    )
    done = tree.ended(before, _at(won_at, last - 1, 0), ends, trees.arity)
    values = _at(leaf_at, last - 1, 0)[None]
    if trees.levels > 1:
        rounds = jnp.clip(_at(place, last - 1, 0), 0, len(keys) - 1)

        def draw(round_):
            return arms.draw(trees, jax.random.fold_in(keys[round_], arms.UPPER), params, (trees.levels - 1, 1))[:, 0]

        noise = jax.vmap(draw, out_axes=1)(rounds)
        values = jnp.concatenate([values, arms.noisy(params, done.sums[1:], noise)])
    return tree.advance(before, done, tree.combined(before, values, trees.variances))


def _at(rows: jax.Array, index: jax.Array, default) -> jax.Array:
    """Each column's row of an index; the default outside."""
    chosen = np.arange(len(rows), dtype=np.int32)[:, None] == index[None, :]
    if rows.dtype == bool:
        return jnp.any(chosen & rows, axis=0)
    return jnp.sum(jnp.where(chosen, rows, default), axis=0, dtype=rows.dtype)


def _totals(rows: jax.Array) -> jax.Array:
    """Sums of the first 0, 1, ... rows; they are exact, as integers and numbers of one lattice are, in any order."""
    lower = np.tri(len(rows) + 1, len(rows), -1)
    return jnp.matmul(jnp.asarray(lower, rows.dtype), rows, precision="highest")

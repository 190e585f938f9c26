"""Elimination by effective Borda scores in blocks of rounds, with the results of single rounds bit for bit.

A block consists of sweeps. In a sweep each of the least played arms is on the left once, in the order
of `Public.tie_rank`.
"""

import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import BlockPlan, Blocks, State, SwitchWhenFn
from jaxdp.dueling._ebs_elimination import arms as arms
from jaxdp.dueling._ebs_elimination import counters as counters
from jaxdp.dueling._ebs_elimination import kernels as kernels
from jaxdp.dueling._ebs_elimination.arms import Params, Private, Public
from jaxdp.dueling._ebs_elimination.counters import Trees
from jaxdp.dueling._ebs_elimination.sweeps import Block, LeastPlayed, Swept, schedule, sweep_arms
from jaxdp.mechanisms.continual_counting import nodes as tree
from jaxdp.numerics.kernels import across_lanes, own_kernel

SWEEPS = 15  # largest number of sweeps in a block; `sweeps` packs counts below 16 into a word
FEW = 3  # with fewer columns, separate blocks are not worth compiling
LONE = 256  # rounds in a block when only one arm is left


class Columns(NamedTuple):
    """The columns of a block's arrays: the active arms in the order of `Public.tie_rank`, then columns without an arm.

    Attributes:
        arm: [columns] int32, the arm of each column; 0 for a column without an arm.
        active: [columns] bool, whether the column belongs to an arm.
        column: [num_arms] int32, the column of each active arm; unused for other arms.
    """

    arm: jax.Array
    active: jax.Array
    column: jax.Array

    def of(self, values: jax.Array) -> jax.Array:
        """Converts values per arm ([..., num_arms]) to values per column ([..., columns])."""
        return values.at[..., self.arm].get(mode="clip")

    def back(self, values: jax.Array, default: jax.Array | int, active: jax.Array) -> jax.Array:
        """Converts values per column ([..., columns]) to values per arm ([..., num_arms]); `default` if inactive."""
        return jnp.where(active, values.at[..., self.column].get(mode="clip"), default)


def elimination_blocks(trees: Trees, num_arms: int) -> tuple[Blocks, ...]:
    """Builds blocks for all arms, for half of the arms, rounded up (if at least `FEW`), and for the last arm."""
    narrow = -(-num_arms // 2)
    widths = [num_arms, narrow] if narrow >= FEW else [num_arms]
    swept = [
        _swept_blocks(trees, num_arms, width, switch_when=_at_most(below))
        for width, below in zip(widths, [*widths[1:], 1], strict=True)
    ]
    return (*swept, _lone_blocks())


def _swept_blocks(trees: Trees, num_arms: int, width: int, *, switch_when: SwitchWhenFn) -> Blocks:
    """Builds blocks of sweeps; a block ends early when an arm is dropped, or another arm becomes a least played arm."""
    # A block has one slot for each sweep and column, sorted by sweep; only slots of least played arms are used. A block
    # has at most as many sweeps as the smallest inner node has entries. So each counter completes at most one inner
    # node of the lowest level in a block, possibly together with nodes above it.
    num_sweeps = min(SWEEPS, trees.arity)
    block = num_sweeps * width
    every = np.arange(width, dtype=np.int32)
    sweeps = np.arange(num_sweeps, dtype=np.int32)[:, None]
    in_order = np.arange(block, dtype=np.int32)
    last = _at_most(1)
    swept = across_lanes(functools.partial(sweep_arms, trees, num_arms))

    def next_left(public: Public) -> tuple[Columns, LeastPlayed]:
        columns = _columns(public, width)
        return columns, schedule(columns.active, columns.of(arms.duels(public)), num_sweeps)

    def slot_rounds(params: Params, public: Public) -> jax.Array:
        def slots(least_played, one_left):
            slot = sweeps * least_played.size[None] + least_played.rank[None, :]
            return jnp.where(one_left, in_order, jnp.where(least_played.is_least[None, :], slot, block).ravel())

        return own_kernel(slots, next_left(public)[1], last(params, public))

    def plan(keys, params: Params, public: Public, contexts: None, limit) -> BlockPlan:
        del contexts
        one_left = last(params, public)
        columns, least_played = next_left(public)
        left = jnp.where(one_left, jnp.argmax(public.active).astype(jnp.int32), jnp.tile(columns.arm, num_sweeps))
        return BlockPlan(
            jnp.stack([left, own_kernel(kernels.opponents, keys, public.active)], axis=-1),
            jnp.where(one_left, limit, jnp.minimum(limit, least_played.length.astype(limit.dtype))),
        )

    def update_block(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        public, private = state.public, state.private
        actions, feedback = report
        one_left = last(params, public)
        columns, least_played = next_left(public)
        nodes = _while_any(
            public.dropped.any() & ~one_left,
            lambda slot, public, private: counters.remove(trees, keys[slot], params, public, private),
            (jnp.argmax(least_played.is_least), public, private),
            tree.Nodes(public.digits, private.sums, public.estimates),
        )
        column_nodes = tree.Nodes(*map(columns.of, nodes))
        length = plan.length.astype(jnp.int32)
        outcome: Swept = swept(
            Block(
                params=params,
                squared_radius=jnp.asarray(params.squared_radius)[jnp.sum(public.active, dtype=jnp.int32)],
                active=columns.active,
                played=columns.of(arms.duels(public)),
                nodes=column_nodes,
                length=jnp.where(one_left, 0, length),
                won=feedback,
                right=actions[:, 1],
                noise=jax.vmap(lambda key: counters.draw(key, params, (1,))[0])(keys),
                upper_noise=_upper_noise(keys, params, column_nodes.digits[0]),
            )
        )
        back = functools.partial(columns.back, active=public.active)
        after = tree.Nodes(*map(back, outcome.nodes, nodes))
        newly_dropped = back(outcome.dropped, jnp.zeros_like(public.active))
        plays, wins = (back(outcome.unpack_duels(words, num_arms).T, 0).T for words in (outcome.plays, outcome.wins))
        next_public = Public(
            public.active & ~newly_dropped,
            jnp.where(one_left, public.dropped, newly_dropped),
            public.plays + plays.astype(public.plays.dtype),
            after.digits,
            after.estimates,
            public.tie_rank,
        )
        used = jnp.where(one_left, plan.length, outcome.used.astype(plan.length.dtype))
        return State(Private(private.wins + wins.astype(private.wins.dtype), after.sums), next_public), used

    def _upper_noise(keys, params: Params, digits: jax.Array) -> jax.Array:
        """Draws the noise ([levels - 1, columns]) of inner nodes that may end, with the keys of their last rounds."""
        if trees.levels == 1:
            return jnp.zeros((0, width), jnp.result_type(int))
        row = jnp.clip(trees.arity - digits - 1, 0, num_sweeps - 1)

        def draw(key):
            return counters.draw(jax.random.fold_in(key, counters.UPPER), params, (trees.levels - 1, 1))[:, 0]

        return jax.vmap(draw, out_axes=1)(keys[row * width + every])

    return Blocks(block, plan, update_block, switch_when, slot_rounds)


def _lone_blocks() -> Blocks:
    """Builds blocks of the last arm's duels with itself, which release nothing."""

    def plan(keys, params: Params, public: Public, contexts: None, limit) -> BlockPlan:
        del params, contexts
        arm = jnp.argmax(public.active).astype(jnp.int32)
        return BlockPlan(jnp.full((len(keys), 2), arm), limit)

    def update_block(keys, params: Params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        del keys, params, report
        return state, plan.length

    return Blocks(LONE, plan, update_block, any_length=True)


def _columns(public: Public, width: int) -> Columns:
    active, tie_rank = public.active, public.tie_rank
    every, columns = jnp.arange(len(active), dtype=jnp.int32), jnp.arange(width, dtype=jnp.int32)
    column = jnp.sum(active[None, :] & (tie_rank[None, :] < tie_rank[:, None]), axis=1, dtype=jnp.int32)
    is_in_column = active[None, :] & (column[None, :] == columns[:, None])
    return Columns(
        jnp.sum(jnp.where(is_in_column, every, 0), axis=1, dtype=jnp.int32), is_in_column.any(axis=1), column
    )


def _at_most(size: int) -> SwitchWhenFn:
    """Returns a function (params, public) -> whether at most `size` arms are active."""

    def switch_when(params: Params, public: Public) -> jax.Array:
        del params
        return jnp.sum(public.active, dtype=jnp.int32) <= size

    return switch_when


def _while_any(needed: jax.Array, compute, inputs: tuple[Any, ...], otherwise) -> Any:
    """Returns compute(*inputs) if `needed` ([] bool) is true, otherwise the value `otherwise`."""

    # A loop instead of a branch: for a batch of lanes, a branch would always compute both sides.
    def body(carry):
        # The barrier ties the inputs to the carry. Without it, XLA moves the computation out of the loop, and always
        # does it.
        _, held = jax.lax.optimization_barrier((carry[0], inputs))
        return jnp.zeros((), bool), compute(*held)

    return jax.lax.while_loop(lambda carry: carry[0], body, (needed, otherwise))[1]

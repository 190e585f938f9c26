"""Plays many rounds of limited updates in one step: in blocks, or from the number of plays of each expert.

Playing in blocks gives the same results as playing round by round, bit for bit. Rounds that are played in one step
belong to one block of the algorithm. If they include the last round of this block, an expert is selected.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, State
from jaxdp.experts._rounds_together import sum_rounds
from jaxdp.numerics.platforms import by_platform

# Maximum rounds played in one step. Blocks are short in early rounds, in which releases are frequent, and always on a
# CPU, because losses of many rounds do not fit in its cache.
SHORT, LONG = 16, 256


class Algorithm(NamedTuple):
    """The functions of the learner from which `blocks` and `counts` are built.

    Attributes:
        num_experts: number of experts.
        add: (state, [num_experts] integer sums of losses over rounds of a block) -> the block's totals. If losses are
            not binary, the sums are over at most 2^10 rounds.
        advance: (key, params, state, totals, rounds) -> the state after this number of rounds. `key()` returns the last
            round's key; it is called only if an expert is selected.
        rounds_left: (rounds played) -> [] integer, the number of rounds left in the block.
    """

    num_experts: int
    add: Callable[[State, jax.Array], Any]
    advance: Callable[..., State]
    rounds_left: Callable[[jax.Array], jax.Array]


def blocks(algorithm: Algorithm) -> tuple[Blocks, ...]:
    """Returns blocks of `SHORT` rounds, followed by blocks of `LONG` rounds except on a CPU."""

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del params, contexts
        length = jnp.minimum(limit, algorithm.rounds_left(public.round))
        return BlockPlan(jnp.broadcast_to(public.expert, keys.shape), length)

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        totals = algorithm.add(state, sum_rounds(report, planned))
        played = plan.length.astype(state.public.round.dtype)
        return algorithm.advance(lambda: keys[plan.length - 1], params, state, totals, played), plan.length

    def is_late(params: Any, public: Any) -> jax.Array:
        del params
        return by_platform(
            public.round, cpu=lambda round_: jnp.zeros_like(round_, bool), default=lambda round_: round_ + 1 >= LONG
        )

    short = Blocks(SHORT, plan, update_block, switch_when=is_late, any_length=True)
    return short, Blocks(LONG, plan, update_block, any_length=True)


def counts(algorithm: Algorithm) -> Counts:
    """Returns functions that play many rounds in one step, given totals of binary losses."""

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key, params
        ahead = jnp.minimum(limit, algorithm.rounds_left(public.round))
        is_played = jnp.arange(algorithm.num_experts, dtype=public.expert.dtype) == public.expert
        return CountPlan(jnp.where(is_played, ahead, 0))

    def privatize(key, params: Any, public: Any, plan: CountPlan, totals) -> jax.Array:
        del key, params, public
        rounds = plan.counts.sum(dtype=plan.counts.dtype)
        clipped = jnp.where(totals > 0, totals, 0)  # NaN becomes 0
        if jnp.issubdtype(clipped.dtype, jnp.floating):
            clipped = jnp.round(clipped)
        return jnp.minimum(clipped.astype(rounds.dtype), rounds)

    def update_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        played = plan.counts.sum(dtype=state.public.round.dtype)
        totals = algorithm.add(state, report.astype(state.private.totals.dtype))
        return algorithm.advance(lambda: key, params, state, totals, played)

    return Counts(plan, privatize, update_counts)

"""Limited updates many rounds at a time: by blocks, with the results of single rounds bit for bit, and by counts.

What goes on at once are rounds of one of the algorithm's own blocks, at whose end an expert is selected.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, State
from jaxdp.experts._rounds_together import added_up

SHORT, LONG = 16, 256  # rounds at once: at the start releases are close to one another


class Algorithm(NamedTuple):
    """What bulk forms take from the algorithm.

    Attributes:
        num_experts: number of experts.
        started: (state) -> totals of the block before the next round's losses.
        add: (totals, losses of up to 2^10 rounds, added up as integers) -> totals.
        advance: (key, params, state, totals, rounds) -> state after so many rounds; `key()` is the last round's key,
            computed only where an expert is selected.
        rounds_left: (rounds played) -> [] integer, rounds that the block still has.
    """

    num_experts: int
    started: Callable[[State], Any]
    add: Callable[[Any, jax.Array], Any]
    advance: Callable[..., State]
    rounds_left: Callable[[jax.Array], jax.Array]


def blocks(algorithm: Algorithm) -> tuple[Blocks, ...]:
    """Short blocks of rounds, then long ones."""

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del params, contexts
        length = jnp.minimum(limit, algorithm.rounds_left(public.round))
        return BlockPlan(jnp.broadcast_to(public.expert, keys.shape), length)

    def absorb(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        totals = algorithm.add(algorithm.started(state), added_up(report, planned))
        played = plan.length.astype(state.public.round.dtype)
        return algorithm.advance(lambda: keys[plan.length - 1], params, state, totals, played), plan.length

    def is_late(params: Any, public: Any) -> jax.Array:
        del params
        return public.round + 1 >= LONG

    return Blocks(SHORT, plan, absorb, until=is_late), Blocks(LONG, plan, absorb)


def counts(algorithm: Algorithm) -> Counts:
    """Counts of plays, for binary losses."""

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key, params
        ahead = jnp.minimum(limit, algorithm.rounds_left(public.round))
        is_played = jnp.arange(algorithm.num_experts, dtype=public.expert.dtype) == public.expert
        return CountPlan(jnp.where(is_played, ahead, 0))

    def privatize(key, params: Any, public: Any, plan: CountPlan, totals) -> jax.Array:
        del key, params, public
        rounds = plan.counts.sum(dtype=plan.counts.dtype)
        whole = jnp.where(totals > 0, totals, 0)  # NaN counts as 0
        if jnp.issubdtype(whole.dtype, jnp.floating):
            whole = jnp.round(whole)
        return jnp.minimum(whole.astype(rounds.dtype), rounds)

    def absorb(key, params: Any, state: State, plan: CountPlan, report) -> State:
        played = plan.counts.sum(dtype=state.public.round.dtype)
        totals = algorithm.started(state) + report.astype(state.private.totals.dtype)
        return algorithm.advance(lambda: key, params, state, totals, played)

    return Counts(plan, privatize, absorb)

"""Plays blocks of many rounds of `svt_restarts` at once; results equal the results of single rounds.

One expert plays all rounds up to the next query, or up to the end of the current block of `limited_updates` if this is
earlier. Both are known in advance, so one kernel adds the losses of these rounds.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, State
from jaxdp.experts._limited_updates import rounds_left
from jaxdp.experts._rounds_together import sum_rounds
from jaxdp.numerics.fixed_point import Sum

# Rounds in a block: blocks of 3 save 10% of the time of single rounds, blocks of 4 save 20%.
FEWEST, MOST = 3, 32
LARGEST = 1024  # largest number of losses of a lane in a block; more do not fit in the cache


class Sums(NamedTuple):
    """Sums of regrets and losses.

    Attributes:
        regrets: [num_experts] sums over the epoch: losses of the plays minus the losses of each expert.
        totals: [num_experts] sums of losses in the current block of `limited_updates`.
    """

    regrets: Sum
    totals: Sum


class Algorithm(NamedTuple):
    """The parts of the algorithm that its blocks use.

    Attributes:
        begin_round: (key, params, state) -> state before the next round's losses.
        add_losses: (state, expert, [num_experts] sums of the losses of rounds that it plays, as integers) -> sums.
        advance: (key, params, state, sums, rounds) -> state after this many rounds; the key is the last round's key.
    """

    begin_round: Callable[..., State]
    add_losses: Callable[[State, jax.Array, jax.Array], Sums]
    advance: Callable[..., State]


def blocks(algorithm: Algorithm, *, num_experts: int, check_every: int) -> tuple[Blocks, ...]:
    """Returns blocks up to the next query or selection; no blocks if they would be too short."""
    length = min(check_every, MOST, LARGEST // num_experts)

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del params, contexts
        rounds_to_query = check_every - public.round % check_every
        rounds = jnp.minimum(limit, jnp.minimum(rounds_to_query, rounds_left(public.selection.round)))
        return BlockPlan(jnp.broadcast_to(public.selection.expert, keys.shape), rounds)

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        actions, losses = report
        state = algorithm.begin_round(keys[0], params, state)
        planned = jnp.arange(length, dtype=plan.length.dtype) < plan.length
        sums = algorithm.add_losses(state, actions[0], sum_rounds(losses, planned))
        played = plan.length.astype(state.public.round.dtype)
        return algorithm.advance(keys[plan.length - 1], params, state, sums, played), plan.length

    return (Blocks(length, plan, update_block),) if length >= FEWEST else ()

"""Plays blocks of rounds of `svt_restarts` in one step; results are the same as round by round.

A single expert is played until the next query or the end of the current block of `limited_updates`, whichever is
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

# Rounds in a block. Compared with single rounds, blocks of 3 rounds save 10% of the time, and blocks of 4 save 20%.
FEWEST, MOST = 3, 32
LARGEST = 1024  # maximum number of losses of a lane in a block; more would not fit in the cache


class Sums(NamedTuple):
    """Sums of regrets and losses.

    Attributes:
        regrets: [num_experts] sums over the epoch of the losses of the plays minus the losses of each expert.
        totals: [num_experts] sums of losses in the current block of `limited_updates`.
    """

    regrets: Sum
    totals: Sum


class Algorithm(NamedTuple):
    """The functions of the learner from which `blocks` are built.

    Attributes:
        begin_round: (key, params, state) -> the state before the next round's losses.
        add_losses: (state, expert, [num_experts] integer sums of losses in rounds in which the expert is played) ->
            sums.
        advance: (key, params, state, sums, rounds) -> the state after this number of rounds; `key` is the last round's
            key.
    """

    begin_round: Callable[..., State]
    add_losses: Callable[[State, jax.Array, jax.Array], Sums]
    advance: Callable[..., State]


def blocks(algorithm: Algorithm, *, num_experts: int, check_every: int) -> tuple[Blocks, ...]:
    """Returns blocks that end at the next query or selection, or earlier; () if they would be too short."""
    length = min(check_every, MOST, LARGEST // num_experts)

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del params, contexts
        rounds_to_query = check_every - public.round % check_every
        rounds = jnp.minimum(limit, jnp.minimum(rounds_to_query, rounds_left(public.selection.round)))
        return BlockPlan(jnp.broadcast_to(public.selection.expert, keys.shape), rounds)

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        actions, losses = report
        state = algorithm.begin_round(keys[0], params, state)
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        sums = algorithm.add_losses(state, actions[0], sum_rounds(losses, planned))
        played = plan.length.astype(state.public.round.dtype)
        return algorithm.advance(keys[plan.length - 1], params, state, sums, played), plan.length

    return (Blocks(length, plan, update_block, any_length=True),) if length >= FEWEST else ()

"""Plays many rounds of an elimination algorithm in one step: in blocks, or from the number of plays of each arm.

Playing in blocks gives the same results as playing round by round, bit for bit. No block and no plan of counts contains
rounds of two epochs, because `advance` drops arms at the end of an epoch.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._bulk import clip_rewards, count_turns, total_per_arm
from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, State
from jaxdp.core.central import reveal_totals

BLOCK_PER_ARM = 16  # number of rounds in a block, for each arm


class Algorithm(NamedTuple):
    """The sizes and functions of an elimination algorithm from which `blocks` and `counts` are built.

    Attributes:
        num_arms: number of arms.
        integer: the dtype of counts and totals.
        size: (public) -> [] integer, the number of active arms.
        length: (params, public) -> [] integer, the number of rounds in the current epoch.
        advance: (key, params, state, [num_arms] total rewards, rounds) -> state after this number of rounds.
    """

    num_arms: int
    integer: jnp.dtype
    size: Callable[[Any], jax.Array]
    length: Callable[[Any, Any], jax.Array]
    advance: Callable[..., State]

    def rounds_ahead(self, params: Any, public: Any, limit: jax.Array) -> jax.Array:
        return jnp.minimum(limit, self.length(params, public) - public.played)


def blocks(algorithm: Algorithm) -> Blocks:
    """Returns functions that plan a block of rounds within one epoch, and play the block in one step."""
    integer = algorithm.integer

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del contexts
        played = public.played + jnp.arange(len(keys), dtype=integer)
        order = jnp.argsort(~public.active, stable=True).astype(jnp.int32)  # active arms first
        return BlockPlan(order[played % algorithm.size(public)], algorithm.rounds_ahead(params, public, limit))

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        actions, feedback = report
        totals = total_per_arm(actions, clip_rewards(feedback, plan.length, integer), algorithm.num_arms)
        return algorithm.advance(keys[plan.length - 1], params, state, totals, plan.length), plan.length

    return Blocks(BLOCK_PER_ARM * algorithm.num_arms, plan, update_block, any_length=True)


def counts(algorithm: Algorithm) -> Counts:
    """Returns functions that play many rounds in one step, given each arm's number of plays and its total reward."""

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key
        ahead, size = algorithm.rounds_ahead(params, public, limit), algorithm.size(public)
        positions = jnp.cumsum(public.active, dtype=algorithm.integer) - 1
        return CountPlan(jnp.where(public.active, count_turns(positions, size, public.played, ahead), 0))

    def update_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        counts, totals = report
        totals = jnp.clip(totals, 0, counts).astype(algorithm.integer)
        return algorithm.advance(key, params, state, totals, counts.sum(dtype=algorithm.integer))

    return Counts(plan, reveal_totals, update_counts)

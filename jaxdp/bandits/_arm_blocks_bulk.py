"""Plays many rounds of the learners of `_arm_blocks` in one step: in blocks, or from the number of plays of each arm.

Playing in blocks gives the same results as playing round by round, bit for bit. All rounds that are played in one step
belong to one block of the algorithm (`ArmBlocks`), which plays a single arm.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._bulk import clip_rewards
from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, State
from jaxdp.core.central import reveal_totals

BLOCK = 128


class Algorithm(NamedTuple):
    """The sizes and functions of a learner from which `blocks` and `counts` are built.

    Attributes:
        num_arms: number of arms.
        integer: the dtype of counts.
        length: (params, public) -> [] integer, rounds of the algorithm's block.
        advance: (key, params, state, total reward, rounds) -> state after this number of rounds.
    """

    num_arms: int
    integer: jnp.dtype
    length: Callable[[Any, Any], jax.Array]
    advance: Callable[..., State]

    def rounds_ahead(self, params: Any, public: Any, limit: jax.Array) -> jax.Array:
        return jnp.minimum(limit, self.length(params, public) - public.played)


def blocks(algorithm: Algorithm) -> Blocks:
    """Returns functions that plan a block of at most 128 rounds of a single arm, and play the block in one step."""

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del contexts
        return BlockPlan(jnp.full(len(keys), public.arm), algorithm.rounds_ahead(params, public, limit))

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        _, feedback = report
        reward = jnp.sum(clip_rewards(feedback, plan.length, algorithm.integer))
        return algorithm.advance(keys[plan.length - 1], params, state, reward, plan.length), plan.length

    return Blocks(BLOCK, plan, update_block, any_length=True)


def counts(algorithm: Algorithm) -> Counts:
    """Returns functions that play many rounds in one step, given each arm's number of plays and its total reward."""

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key
        is_played = jnp.arange(algorithm.num_arms, dtype=jnp.int32) == public.arm
        return CountPlan(jnp.where(is_played, algorithm.rounds_ahead(params, public, limit), 0))

    def update_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        counts, totals = report
        reward = jnp.clip(totals, 0, counts).sum(dtype=algorithm.integer)
        return algorithm.advance(key, params, state, reward, counts.sum(dtype=algorithm.integer))

    return Counts(plan, reveal_totals, update_counts)

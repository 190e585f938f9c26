"""Plays many rounds of explore-then-commit in one step: in blocks, or from the number of plays of each arm.

Playing in blocks gives the same results as playing round by round, bit for bit. A block or a plan of counts contains
rounds of exploration or rounds after it, but never both. So `advance` can determine from the number of rounds whether
exploration ends with the last of these rounds. `noisy_argmax` also uses this module: all its rounds are exploration.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._bulk import count_turns, total_turns
from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, State
from jaxdp.core.central import reveal_totals

BLOCK_PER_ARM = 16


class Algorithm(NamedTuple):
    """The sizes and functions of a learner from which `blocks` and `counts` are built.

    Attributes:
        num_arms: number of arms.
        explore_rounds: rounds of exploration.
        arm: (round, best_arm) -> the arm to play in this round; also for an array of rounds.
        to_integers: (params, rewards) -> rewards as integers.
        add: (state, [num_arms] integers) -> the totals plus these integers; after exploration, the unchanged totals.
        advance: (key, params, state, totals, rounds) -> the state after this number of rounds.
    """

    num_arms: int
    explore_rounds: int
    arm: Callable[[jax.Array, jax.Array], jax.Array]
    to_integers: Callable[[Any, jax.Array], jax.Array]
    add: Callable[[State, jax.Array], Any]
    advance: Callable[..., State]

    def rounds_ahead(self, public: Any, limit: jax.Array) -> jax.Array:
        left = self.explore_rounds - public.round  # rounds until exploration ends
        return jnp.where(public.round < self.explore_rounds, jnp.minimum(limit, left), limit)


def blocks(algorithm: Algorithm) -> Blocks:
    """Returns functions that plan a block and play it in one step; integer rewards may be added in any order."""

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del params, contexts
        rounds = public.round + jnp.arange(len(keys), dtype=public.round.dtype)
        return BlockPlan(algorithm.arm(rounds, public.best_arm), algorithm.rounds_ahead(public, limit))

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        _, feedback = report
        planned = jnp.arange(len(feedback), dtype=plan.length.dtype) < plan.length
        rewards = jnp.where(planned, algorithm.to_integers(params, feedback), 0)
        public: Any = state.public
        turns = jax.lax.cond(
            public.round < algorithm.explore_rounds,
            lambda: total_turns(rewards, public.round, algorithm.num_arms),
            lambda: jnp.zeros(algorithm.num_arms, rewards.dtype),
        )
        totals = algorithm.add(state, turns)
        return algorithm.advance(keys[plan.length - 1], params, state, totals, plan.length), plan.length

    length = BLOCK_PER_ARM * algorithm.num_arms
    return Blocks(length, plan, update_block, ends=(algorithm.explore_rounds,), any_length=True)


def counts(algorithm: Algorithm) -> Counts:
    """Returns functions that play many rounds in one step, given each arm's number of plays and total binary reward."""

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key, params
        ahead = algorithm.rounds_ahead(public, limit)
        indices = jnp.arange(algorithm.num_arms, dtype=ahead.dtype)
        explored = count_turns(indices, algorithm.num_arms, public.round, ahead)
        committed = jnp.where(indices == public.best_arm.astype(indices.dtype), ahead, 0)
        return CountPlan(jnp.where(public.round < algorithm.explore_rounds, explored, committed))

    def update_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        counts, won = report
        totals = algorithm.add(state, jnp.clip(won, 0, counts).astype(state.private.totals.dtype))
        return algorithm.advance(key, params, state, totals, counts.sum(dtype=state.public.round.dtype))

    return Counts(plan, reveal_totals, update_counts)

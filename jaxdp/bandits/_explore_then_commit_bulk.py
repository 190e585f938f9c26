"""Explore-then-commit many rounds at a time: by blocks, with the results of single rounds bit for bit, and by counts.

Exploration and commitment never meet in one block, nor in one plan of counts: `advance` can tell by the number of
rounds whether exploration ends with the last of them.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._bulk import as_counted, totals_of, turns
from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, State

BLOCK_PER_ARM = 16


class Algorithm(NamedTuple):
    """What bulk forms take from the algorithm.

    Attributes:
        num_arms: number of arms.
        explore_rounds: rounds of exploration.
        arm: (round, best_arm) -> the arm of a round.
        whole: (params, rewards) -> rewards in whole numbers.
        add: (totals, whole numbers of each arm) -> totals.
        advance: (key, params, state, totals, rounds) -> state after so many rounds.
    """

    num_arms: int
    explore_rounds: int
    arm: Callable[[jax.Array, jax.Array], jax.Array]
    whole: Callable[[Any, jax.Array], jax.Array]
    add: Callable[[Any, jax.Array], Any]
    advance: Callable[..., State]

    def rounds_ahead(self, public: Any, limit: jax.Array) -> jax.Array:
        """At most `limit` rounds: up to the end of exploration, if it is not over."""
        left = self.explore_rounds - public.round
        return jnp.where(public.round < self.explore_rounds, jnp.minimum(limit, left), limit)


def blocks(algorithm: Algorithm) -> Blocks:
    """Blocks of rounds, whose rewards are added up as integers, in any order."""

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del params, contexts
        rounds = public.round + jnp.arange(len(keys), dtype=public.round.dtype)
        return BlockPlan(algorithm.arm(rounds, public.best_arm), algorithm.rounds_ahead(public, limit))

    def absorb(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        actions, feedback = report
        planned = jnp.arange(len(actions), dtype=plan.length.dtype) < plan.length
        rewards = jnp.where(planned, algorithm.whole(params, feedback), 0)
        totals = algorithm.add(state.private.totals, totals_of(actions, rewards, algorithm.num_arms))
        return algorithm.advance(keys[plan.length - 1], params, state, totals, plan.length), plan.length

    return Blocks(BLOCK_PER_ARM * algorithm.num_arms, plan, absorb)


def counts(algorithm: Algorithm) -> Counts:
    """Counts of plays, for binary rewards."""

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key, params
        ahead = algorithm.rounds_ahead(public, limit)
        every = jnp.arange(algorithm.num_arms, dtype=ahead.dtype)
        explored = turns(every, algorithm.num_arms, public.round, ahead)
        committed = jnp.where(every == public.best_arm.astype(every.dtype), ahead, 0)
        return CountPlan(jnp.where(public.round < algorithm.explore_rounds, explored, committed))

    def absorb(key, params: Any, state: State, plan: CountPlan, report) -> State:
        counts, won = report
        totals = state.private.totals + jnp.clip(won, 0, counts).astype(state.private.totals.dtype)
        return algorithm.advance(key, params, state, totals, counts.sum(dtype=state.public.round.dtype))

    return Counts(plan, as_counted, absorb)

"""Plays many rounds of phased elimination at once.

Blocks give the same results as rounds, and counts give results with the same distribution.
A block plan or a count plan covers rounds of one phase only. All pairs of a phase are known before its first duel.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, CountPlan, CountPrivatizeFn, Counts, State

BLOCK_PER_ARM = 16  # rounds of a block, per arm


class Algorithm(NamedTuple):
    """The functions of an algorithm that the bulk forms use.

    Attributes:
        num_arms: number of arms.
        integer: the dtype of counts.
        num_active: (public) -> [] integer, number of active arms.
        duels: (public, indices of rounds in the phase) -> [..., 2] int32, the pairs of these rounds.
        rounds_of_phase: (params, public) -> [] integer, number of rounds of the phase.
        wins_so_far: (state) -> [num_arms] integer, each arm's wins in this phase as the left arm of a pair.
        advance: (key, params, public, wins, rounds) -> state after `rounds` more rounds of the phase; `wins` are the
            phase's wins including these rounds.
    """

    num_arms: int
    integer: jnp.dtype
    num_active: Callable[..., jax.Array]
    duels: Callable[..., jax.Array]
    rounds_of_phase: Callable[..., jax.Array]
    wins_so_far: Callable[..., jax.Array]
    advance: Callable[..., State]

    def rounds_ahead(self, params: Any, public: Any, limit: jax.Array) -> jax.Array:
        """Returns the number of rounds to the end of the phase, at most `limit`."""
        return jnp.minimum(limit, self.rounds_of_phase(params, public) - public.played)


def blocks(algorithm: Algorithm) -> Blocks:
    """Returns the functions that play a phase in blocks of rounds."""
    num_arms, integer = algorithm.num_arms, algorithm.integer

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del contexts
        rounds = public.played + jnp.arange(len(keys), dtype=integer)
        return BlockPlan(algorithm.duels(public, rounds), algorithm.rounds_ahead(params, public, limit))

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        actions, feedback = report
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        won = jnp.where(planned, jnp.clip(feedback, 0, 1), 0).astype(integer)
        wins = algorithm.wins_so_far(state) + won @ jax.nn.one_hot(actions[:, 0], num_arms, dtype=integer)
        return algorithm.advance(keys[plan.length - 1], params, state.public, wins, plan.length), plan.length

    return Blocks(BLOCK_PER_ARM * num_arms, plan, update_block, any_length=True)


def counts(algorithm: Algorithm, privatize_counts: CountPrivatizeFn) -> Counts:
    """Returns the functions that simulate rounds by counts of ordered pairs.

    Counts are a flattened [num_arms, num_arms] matrix, with the left arm as the row.
    """
    num_arms, integer = algorithm.num_arms, algorithm.integer

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key
        ahead, size = algorithm.rounds_ahead(params, public, limit), algorithm.num_active(public)
        rank = jnp.cumsum(public.active, dtype=integer) - 1  # an arm's index among the active arms
        pair_round = rank[:, None] + size * rank[None, :]  # the pair's round within a pass
        a_pass = size * size
        last = public.played + ahead - 1
        times = (last - pair_round) // a_pass - (public.played - 1 - pair_round) // a_pass
        return CountPlan(jnp.where(public.active[:, None] & public.active[None, :], times, 0).ravel())

    def update_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        counts, won = report
        won = jnp.clip(won, 0, counts).astype(integer).reshape(num_arms, num_arms).sum(1)
        wins = algorithm.wins_so_far(state) + won
        return algorithm.advance(key, params, state.public, wins, counts.sum(dtype=integer))

    return Counts(plan, privatize_counts, update_counts)

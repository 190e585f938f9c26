"""Plays many rounds of elimination by G-optimal designs in one step: as blocks of rounds, or as counts of duels.

Blocks give the same results as single rounds, bit for bit. All duels of a phase are known in advance. A block plan or a
count plan covers rounds of one phase only.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, State
from jaxdp.core.central import reveal_totals

BLOCK = 128


class Algorithm(NamedTuple):
    """The number of arms, and the functions of the algorithm that `blocks` and `counts` use.

    Attributes:
        num_arms: number of arms.
        slots: (public, indices of rounds in the phase) -> int32, the rows of `public.duels` played in these rounds.
        length: (public) -> [] integer, number of rounds of the phase.
        wins_so_far: (state) -> [num_slots] integer, the wins of this phase.
        advance: (key, params, public, wins, rounds) -> state after `rounds` more rounds of the phase; `wins` are the
            phase's wins including these rounds.
    """

    num_arms: int
    slots: Callable[..., jax.Array]
    length: Callable[..., jax.Array]
    wins_so_far: Callable[..., jax.Array]
    advance: Callable[..., State]

    def rounds_ahead(self, public: Any, limit: jax.Array) -> jax.Array:
        """Returns the number of remaining rounds of the phase, at most `limit`."""
        return jnp.minimum(limit, self.length(public) - public.played)


def blocks(algorithm: Algorithm) -> Blocks:
    """Builds the functions that play blocks of at most 128 rounds; a block ends at the end of a phase."""

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del params, contexts
        played = public.played + jnp.arange(len(keys), dtype=public.plays.dtype)
        return BlockPlan(public.duels[algorithm.slots(public, played)], algorithm.rounds_ahead(public, limit))

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        _, feedback = report
        public: Any = state.public
        offsets = jnp.arange(len(keys), dtype=public.plays.dtype)
        won = jnp.where(offsets < plan.length, jnp.clip(feedback, 0, 1), 0).astype(offsets.dtype)
        wins = algorithm.wins_so_far(state).at[algorithm.slots(public, public.played + offsets)].add(won)
        return algorithm.advance(keys[plan.length - 1], params, public, wins, plan.length), plan.length

    return Blocks(BLOCK, plan, update_block, any_length=True)


def counts(algorithm: Algorithm) -> Counts:
    """Builds the functions that play rounds of a phase by the number of duels of each ordered pair of arms.

    These numbers are a flattened [num_arms, num_arms] matrix.
    """
    num_arms = algorithm.num_arms

    def count_duels(public: Any, ahead: jax.Array) -> jax.Array:
        """Counts the duels of each pair in the next `ahead` rounds of the phase. The result is [num_slots] integer."""
        ends = jnp.cumsum(public.plays)
        starts = jnp.maximum(ends - public.plays, public.played)
        return jnp.maximum(jnp.minimum(ends, public.played + ahead) - starts, 0)

    def pair_indices(public: Any) -> jax.Array:
        """Returns each pair's index in the flattened matrix. The result is [num_slots]."""
        return public.duels[:, 0] * num_arms + public.duels[:, 1]

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key, params
        duels = count_duels(public, algorithm.rounds_ahead(public, limit))
        return CountPlan(jnp.zeros(num_arms**2, duels.dtype).at[pair_indices(public)].add(duels))

    def update_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        num_duels, won = report
        public: Any = state.public
        ahead = num_duels.sum(dtype=public.plays.dtype)
        won = jnp.clip(won, 0, num_duels).astype(ahead.dtype)[pair_indices(public)]
        won = jnp.where(count_duels(public, ahead) > 0, won, 0)
        return algorithm.advance(key, params, public, algorithm.wins_so_far(state) + won, ahead)

    return Counts(plan, reveal_totals, update_counts)

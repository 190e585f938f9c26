"""Elimination in epochs many rounds at a time: in blocks (bit for bit the results of single rounds), and as counts.

No block and no plan of counts crosses the end of an epoch, where `advance` drops arms.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._bulk import rewards_of, totals_of, turns
from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, State
from jaxdp.core.central import reveal_totals

BLOCK_PER_ARM = 16


class Algorithm(NamedTuple):
    """The parts of the algorithm that bulk forms use.

    Attributes:
        num_arms: number of arms.
        integer: the type of counts.
        size: (public) -> [] integer, the number of active arms.
        length: (params, public) -> [] integer, rounds of this epoch.
        in_turn: (public, played) -> the arms to play in these rounds of the epoch.
        advance: (key, params, state, rewards of each arm, rounds) -> state after this number of rounds.
    """

    num_arms: int
    integer: jnp.dtype
    size: Callable[[Any], jax.Array]
    length: Callable[[Any, Any], jax.Array]
    in_turn: Callable[[Any, jax.Array], jax.Array]
    advance: Callable[..., State]

    def rounds_ahead(self, params: Any, public: Any, limit: jax.Array) -> jax.Array:
        return jnp.minimum(limit, self.length(params, public) - public.played)


def blocks(algorithm: Algorithm) -> Blocks:
    """Returns blocks of rounds."""
    integer = algorithm.integer

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del contexts
        played = public.played + jnp.arange(len(keys), dtype=integer)
        return BlockPlan(algorithm.in_turn(public, played), algorithm.rounds_ahead(params, public, limit))

    def update_block(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        actions, feedback = report
        totals = totals_of(actions, rewards_of(feedback, plan.length, integer), algorithm.num_arms)
        return algorithm.advance(keys[plan.length - 1], params, state, totals, plan.length), plan.length

    return Blocks(BLOCK_PER_ARM * algorithm.num_arms, plan, update_block)


def counts(algorithm: Algorithm) -> Counts:
    """Returns counts of plays."""

    def plan(key, params: Any, public: Any, limit) -> CountPlan:
        del key
        ahead, size = algorithm.rounds_ahead(params, public, limit), algorithm.size(public)
        positions = jnp.cumsum(public.active, dtype=algorithm.integer) - 1
        return CountPlan(jnp.where(public.active, turns(positions, size, public.played, ahead), 0))

    def update_counts(key, params: Any, state: State, plan: CountPlan, report) -> State:
        counts, totals = report
        totals = jnp.clip(totals, 0, counts).astype(algorithm.integer)
        return algorithm.advance(key, params, state, totals, counts.sum(dtype=algorithm.integer))

    return Counts(plan, reveal_totals, update_counts)

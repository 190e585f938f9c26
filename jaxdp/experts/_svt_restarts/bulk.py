"""`svt_restarts` many rounds at a time, with the results of single rounds.

Between two questions nothing is released but the ends of blocks of rounds of its inner algorithm, which are known
beforehand: an expert plays the rounds up to the nearer of the two, and their losses are added in one kernel.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import BlockPlan, Blocks, State
from jaxdp.experts._limited_updates import rounds_left
from jaxdp.experts._rounds_together import sum_rounds
from jaxdp.numerics.fixed_point import Sum

FEWEST, MOST = 3, 32  # rounds at once: by 3 they take a tenth less time than one by one, by 4 a fifth
LARGEST = 1024  # losses of a lane at once: more do not stay in the cache


class Sums(NamedTuple):
    """What losses are added to.

    Attributes:
        regrets: [num_experts] over the epoch, losses of the plays less those of each expert.
        totals: [num_experts] losses of the block of the inner algorithm.
    """

    regrets: Sum
    totals: Sum


class Algorithm(NamedTuple):
    """What the bulk form takes from the algorithm.

    Attributes:
        begun: (key, params, state) -> (state, sums) before the next round's losses.
        added: (sums, expert, losses of rounds in which it plays, added up as integers) -> sums.
        advance: (key, params, state, sums, rounds) -> state after so many rounds, of which the key is the last one's.
    """

    begun: Callable[..., tuple[State, Sums]]
    added: Callable[[Sums, jax.Array, jax.Array], Sums]
    advance: Callable[..., State]


def blocks(algorithm: Algorithm, *, num_experts: int, check_every: int) -> tuple[Blocks, ...]:
    """Rounds up to the next question, or to the next selection; none where these are too few."""
    length = min(check_every, MOST, LARGEST // num_experts)

    def plan(keys, params: Any, public: Any, contexts: None, limit) -> BlockPlan:
        del params, contexts
        unasked = check_every - public.round % check_every
        rounds = jnp.minimum(limit, jnp.minimum(unasked, rounds_left(public.selection.round)))
        return BlockPlan(jnp.broadcast_to(public.selection.expert, keys.shape), rounds)

    def absorb(keys, params: Any, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        actions, losses = report
        state, sums = algorithm.begun(keys[0], params, state)
        planned = jnp.arange(length, dtype=plan.length.dtype) < plan.length
        sums = algorithm.added(sums, actions[0], sum_rounds(losses, planned))
        played = plan.length.astype(state.public.round.dtype)
        return algorithm.advance(keys[plan.length - 1], params, state, sums, played), plan.length

    return (Blocks(length, plan, absorb),) if length >= FEWEST else ()

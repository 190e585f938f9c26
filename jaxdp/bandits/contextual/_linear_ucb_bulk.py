"""LinUCB on private reports, many rounds at a time: between two solutions only the sum of the reports matters."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits.contextual._contexts import select_context
from jaxdp.bandits.contextual._model import longest_block, next_solve
from jaxdp.core import BlockPlan, Blocks, BlockTotal, Channel, State
from jaxdp.mechanisms import Moments, exact_moments


class Algorithm(NamedTuple):
    """The parts of the algorithm that blocks use.

    Attributes:
        channel: of the reports; it draws a total in one step.
        act: (key, params, public, context) -> arm.
        absorb: (params, public, sum of reports, rounds) -> public state after these rounds.
    """

    channel: Channel
    act: Callable[..., jax.Array]
    absorb: Callable[..., Any]


def blocks(algorithm: Algorithm, update_every: int | float | str, horizon: int) -> tuple[Blocks, ...]:
    """Returns blocks of rounds; none crosses the round after which the model is recomputed.

    Args:
        algorithm: the single rounds.
        update_every: as for `linear_ucb`.
        horizon: rounds T.

    Returns:
        The blocks; none if the model is recomputed after every round, or after rounds that depend on the reports.
    """
    due_at = next_solve(update_every)

    def plan(keys, params: Any, public: Any, contexts: jax.Array, limit) -> BlockPlan:
        assert due_at is not None
        actions = jax.vmap(lambda key, context: algorithm.act(key, params, public, context))(keys, contexts)
        ahead = jnp.maximum(
            due_at(public.model.solved) - public.round, 1
        )  # 1: V had no factor at the round when it was due
        return BlockPlan(actions, jnp.minimum(limit, ahead).astype(limit.dtype))

    def exact(params: Any, public: Any, context: jax.Array, action: jax.Array, feedback) -> Moments:
        del public
        return exact_moments(params.channel, (select_context(context, action), feedback))

    def release(key, params: Any, public: Any, sums: Moments, length: jax.Array) -> Moments:
        del public
        assert algorithm.channel.total is not None
        return algorithm.channel.total(key, params.channel, sums, length)

    def absorb(keys, params: Any, state: State, plan: BlockPlan, report: Moments) -> tuple[State, jax.Array]:
        del keys
        return State((), algorithm.absorb(params, state.public, report, plan.length)), plan.length

    longest = longest_block(update_every, horizon)
    return (Blocks(longest, plan, absorb, total=BlockTotal(exact, release)),) if longest > 1 else ()

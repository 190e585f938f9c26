"""A learner that plays an epoch at a time meets the same shifting losses by rounds, by blocks and by counts."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    BlockPlan,
    Blocks,
    CountPlan,
    Counts,
    Guarantee,
    Interface,
    Learner,
    Space,
    State,
    arms,
    guarantee_for,
)
from jaxdp.experts import shifting_losses
from jaxdp.testing import check_learner

EPOCH = 5
SIZES: dict[str, Any] = {"num_experts": 3, "horizon": 22}


def follow_the_leader(num_experts: int) -> Learner:
    """Plays the expert with the smallest total so far, chosen again after every epoch."""

    def params(*, epsilon: float) -> dict[str, np.ndarray]:
        if not epsilon > 0:
            raise ValueError(f"epsilon must be > 0, got {epsilon}")
        return {}

    def chosen(state: State, added: jax.Array, rounds: jax.Array) -> State:
        totals, played = state.private[0] + added, state.private[1] + rounds
        leader = jnp.where(played % EPOCH == 0, jnp.argmin(totals).astype(jnp.int32), state.public[0])
        return State((totals, played), (leader, played))

    def count(losses: jax.Array) -> jax.Array:
        return losses.astype(jnp.result_type(int))

    def left(public: tuple[jax.Array, jax.Array], limit: jax.Array) -> jax.Array:
        return jnp.minimum(EPOCH - public[1] % EPOCH, limit)

    def counts(key, params, public, limit) -> CountPlan:
        return CountPlan(jnp.where(jnp.arange(num_experts, dtype=jnp.int32) == public[0], left(public, limit), 0))

    def update_block(keys, params, state, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        is_planned = jnp.arange(EPOCH) < plan.length
        return chosen(state, jnp.where(is_planned[:, None], report, 0).sum(0), plan.length), plan.length

    nothing = jnp.result_type(int)
    start = jnp.zeros(num_experts, nothing), jnp.zeros((), nothing)
    return Learner(
        params=params,
        guarantee=guarantee_for(
            params,
            lambda epsilon: Guarantee.pure(
                epsilon, trust_model="central", privacy_unit="nothing", argument="a test's learner, not private"
            ),
        ),
        init=lambda key, params: State(start, (jnp.int32(0), start[1])),
        act=lambda key, params, public, context: public[0],
        privatize=lambda key, params, public, context, action, feedback: count(feedback),
        update=lambda key, params, state, report: chosen(state, report, jnp.ones((), nothing)),
        blocks=(
            Blocks(
                length=EPOCH,
                plan=lambda keys, params, public, contexts, limit: BlockPlan(
                    jnp.broadcast_to(public[0], EPOCH), left(public, limit)
                ),
                update_block=update_block,
            ),
        ),
        counts=Counts(
            plan=counts,
            privatize=lambda key, params, public, plan, totals: totals,
            update_counts=lambda key, params, state, plan, report: chosen(state, report, plan.counts.sum()),
        ),
        interface=Interface(arms(num_experts), Space("numbers", (num_experts,), 0, 1)),
    )


def test_epochs():
    environment = shifting_losses(**SIZES, num_shifts=3, shift_times="drawn", gap=0.4)
    check_learner(
        follow_the_leader(3), environment, {"epsilon": 1.0}, horizon=22, key=jax.random.key(5), num_lanes=2000
    )

"""Explore-then-commit in the local model, by rounds, blocks and counts: for tests of many reports at once."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import BlockPlan, Blocks, CountPlan, Counts, Interface, Learner, Space, State, TotalFn, arms
from jaxdp.mechanisms import label_randomizer

BLOCK = 12


class Public(NamedTuple):
    """[num_arms] reported successes, [] integer rounds played, [] int32 the arm committed to (-1 before)."""

    wins: jax.Array
    round: jax.Array
    best_arm: jax.Array


def local_commit(*, num_arms: int, explore_rounds: int, total: TotalFn | None = None) -> Learner:
    """Plays arms in turn, then the one with most reported successes.

    Args:
        num_arms: >= 2.
        explore_rounds: a multiple of num_arms.
        total: the distribution of a sum of reports, for counts; None is the randomizer's.
    """
    randomizer = label_randomizer()
    total = total or randomizer.total
    assert total is not None
    every = np.arange(num_arms, dtype=np.int32)

    def init(key, params) -> State:
        del key, params
        integer = jnp.result_type(int)
        return State((), Public(jnp.zeros(num_arms, integer), jnp.zeros((), integer), jnp.int32(-1)))

    def arm(public: Public, round_: jax.Array) -> jax.Array:
        return jnp.where(round_ < explore_rounds, (round_ % num_arms).astype(jnp.int32), public.best_arm)

    def act(key, params, public: Public, context) -> jax.Array:
        del key, params, context
        return arm(public, public.round)

    def privatize(key, params, public: Public, context, action, feedback):
        del public, context
        return action, randomizer.report(key, params, feedback)

    def advance(public: Public, wins: jax.Array, played: jax.Array) -> State:
        wins = jnp.where(public.round < explore_rounds, public.wins + wins.astype(public.wins.dtype), public.wins)
        round_ = public.round + played
        best = jnp.where(round_ == explore_rounds, jnp.argmax(wins).astype(jnp.int32), public.best_arm)
        return State((), Public(wins, round_, best))

    def update(key, params, state: State, report) -> State:
        del key, params
        action, won = report
        return advance(state.public, jnp.where(every == action, won, 0), jnp.ones_like(state.public.round))

    def ahead(public: Public, limit: jax.Array) -> jax.Array:
        exploring = public.round < explore_rounds
        return jnp.where(exploring, jnp.minimum(limit, explore_rounds - public.round), limit)

    def plan_block(keys, params, public: Public, contexts, limit) -> BlockPlan:
        del params, contexts
        rounds = public.round + jnp.arange(len(keys), dtype=public.round.dtype)
        return BlockPlan(arm(public, rounds), ahead(public, limit))

    def update_block(keys, params, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        del params
        actions, won = report
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        wins = jnp.sum(jnp.where((actions[:, None] == every[None, :]) & planned[:, None], won[:, None], 0), axis=0)
        return advance(state.public, wins, plan.length), plan.length

    def plan_counts(key, params, public: Public, limit) -> CountPlan:
        del key, params
        rounds, best = ahead(public, limit), public.best_arm
        last = public.round + rounds - 1
        numbers = every.astype(public.round.dtype)
        in_turn = (last - numbers) // num_arms - (public.round - 1 - numbers) // num_arms
        return CountPlan(jnp.where(public.round < explore_rounds, in_turn, jnp.where(every == best, rounds, 0)))

    def privatize_counts(key, params, public, plan: CountPlan, totals):
        del public
        return plan.counts, total(key, params, totals, plan.counts.astype(totals.dtype))

    def update_counts(key, params, state: State, plan: CountPlan, report) -> State:
        del key, params
        counts, won = report
        return advance(state.public, won, counts.sum(dtype=state.public.round.dtype))

    return Learner(
        params=randomizer.params,
        guarantee=randomizer.guarantee,
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(Blocks(BLOCK, plan_block, update_block),),
        counts=Counts(plan_counts, privatize_counts, update_counts),
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )

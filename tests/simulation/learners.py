"""Learners that only tests need: they reach corners of the protocol that small algorithms leave."""

import math
from dataclasses import dataclass
from typing import NamedTuple

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
    Scalar,
    Space,
    State,
    arms,
    guarantee_for,
    scalar_leaf,
)
from jaxdp.mechanisms import laplace
from jaxdp.validation import check_epsilon


# ---- a contextual learner with a Cholesky factor ---------------------------------------------------------------------
@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class LinearParams:
    """epsilon: [] float > 0; width: [] float >= 0, of the confidence radius; shift: [] float, per sqrt(round)."""

    epsilon: Scalar
    width: Scalar
    shift: Scalar


class Moments(NamedTuple):
    """The users' noisy reports: V = sum of x x^T [dim, dim] and u = sum of y x [dim]; rounds played."""

    precision: jax.Array
    response: jax.Array
    round: jax.Array


def linear_bandit(*, num_arms: int, dim: int) -> Learner:
    """Plays LinUCB from locally noisy moments: features have norm at most 1, rewards are clipped to [-1, 1].

    Privacy: epsilon-DP in the local model, unit one user: the upper triangle of x x^T has L1 norm at most dim, y x at
        most sqrt(dim), so the pair has L1 sensitivity 2 (dim + sqrt(dim)).
    """
    sensitivity = 2 * (dim + math.sqrt(dim))
    upper = np.triu_indices(dim)

    def params(*, epsilon: float, width: float = 0.5) -> LinearParams:
        scale = sensitivity / check_epsilon(epsilon)
        return LinearParams(
            epsilon=scalar_leaf("epsilon", epsilon),
            width=scalar_leaf("width", width),
            shift=scalar_leaf("shift", 4 * scale * math.sqrt(dim)),  # twice the spectral norm of the noise, or so
        )

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(epsilon, trust_model="local", privacy_unit="one user", argument="noised moments")

    def init(key, params: LinearParams) -> State:
        del key, params
        return State((), Moments(jnp.zeros((dim, dim)), jnp.zeros(dim), jnp.zeros((), jnp.result_type(int))))

    def act(key, params: LinearParams, public: Moments, context) -> jax.Array:
        del key
        shift = 1 + params.shift * jnp.sqrt(public.round.astype(public.response.dtype))
        factor = jax.scipy.linalg.cho_factor(public.precision + shift * jnp.eye(dim))
        theta = jax.scipy.linalg.cho_solve(factor, public.response)
        spread = jnp.sqrt(jnp.sum(context.T * jax.scipy.linalg.cho_solve(factor, context.T), axis=0))
        return jnp.argmax(context @ theta + params.width * spread).astype(jnp.int32)

    def privatize(key, params: LinearParams, public: Moments, context, action, feedback):
        del public
        x, y = context[action], jnp.clip(feedback, -1, 1)
        exact = jnp.concatenate([(x[:, None] * x[None, :])[upper], y * x])
        return laplace(key, exact, params.epsilon, l1_sensitivity=sensitivity)  # not even the action

    def update(key, params: LinearParams, state: State, report) -> State:
        del key, params
        triangle, response = report[: len(upper[0])], report[len(upper[0]) :]
        square = jnp.zeros((dim, dim)).at[upper].set(triangle)
        square = square + jnp.triu(square, 1).T
        public: Moments = state.public
        return State((), Moments(public.precision + square, public.response + response, public.round + 1))

    context = Space("numbers", (num_arms, dim))
    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=Interface(arms(num_arms), Space("numbers"), context),
    )


# ---- a best-arm learner with a stopping time -------------------------------------------------------------------------
@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class EliminationParams:
    """epsilon: [] float > 0; log_term: [] float, logarithm of 4 num_arms / failure_prob; extra_plays: [] integer."""

    epsilon: Scalar
    log_term: Scalar
    extra_plays: Scalar


class Phase(NamedTuple):
    """Released: [num_arms] bool active; [] integer phase, from 0, and position, rounds played in this phase."""

    active: jax.Array
    phase: jax.Array
    position: jax.Array


def successive_elimination(*, num_arms: int, first_plays: int = 8, block: int = 48) -> Learner:
    """Plays every active arm first_plays * 2^p times in phase p, in turn; then drops those with a small noisy mean.

    Stops when one arm is left. The value `extra_plays` is for mutants: plays of an arm and phase too many, by counts.

    Privacy: epsilon-DP in the central model, unit one round's reward: every reward enters one arm's total of one phase,
        and the totals are released once, by the Laplace mechanism.
    """
    every = np.arange(num_arms, dtype=np.int32)

    def params(*, epsilon: float, failure_prob: float = 0.1, extra_plays: int = 0) -> EliminationParams:
        return EliminationParams(
            epsilon=scalar_leaf("epsilon", check_epsilon(epsilon)),
            log_term=scalar_leaf("failure_prob", math.log(4 * num_arms / failure_prob)),
            extra_plays=jax.dtypes.canonicalize_dtype(int).type(extra_plays),
        )

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon, trust_model="central", privacy_unit="one round's reward", argument="one release a phase"
        )

    def init(key, params: EliminationParams) -> State:
        del key, params
        integer = jnp.result_type(int)
        return State(
            jnp.zeros(num_arms, integer),
            Phase(jnp.ones(num_arms, bool), jnp.zeros((), integer), jnp.zeros((), integer)),
        )

    def plays(public: Phase) -> jax.Array:
        return first_plays * 2 ** jnp.minimum(public.phase, 20)

    def arm_at(public: Phase, position: jax.Array) -> jax.Array:
        rank = position % public.active.sum(dtype=position.dtype)
        ranks = jnp.cumsum(public.active, dtype=position.dtype) - 1
        return jnp.argmax(public.active & (ranks == rank)).astype(jnp.int32)

    def act(key, params: EliminationParams, public: Phase, context) -> jax.Array:
        del key, params, context
        return arm_at(public, public.position)

    def privatize(key, params: EliminationParams, public: Phase, context, action, feedback):
        del key, params, public, context
        return action, feedback

    def advance(key, params: EliminationParams, state: State, wins: jax.Array, played: jax.Array, length) -> State:
        public: Phase = state.public
        position = public.position + played

        def eliminate() -> State:
            n = plays(public).astype(jnp.result_type(float))
            noisy = laplace(key, wins.astype(n.dtype), params.epsilon, l1_sensitivity=1.0) / n
            radius = jnp.sqrt(params.log_term / (2 * n)) + params.log_term / (params.epsilon * n)
            best = jnp.where(public.active, noisy, -jnp.inf).max()
            active = public.active & (noisy >= best - 2 * radius)
            return State(jnp.zeros_like(wins), Phase(active, public.phase + 1, jnp.zeros_like(position)))

        return jax.lax.cond(
            position == length, eliminate, lambda: State(wins, Phase(public.active, public.phase, position))
        )

    def length(public: Phase, extra: int | Scalar = 0) -> jax.Array:
        return public.active.sum(dtype=public.position.dtype) * (plays(public) + extra)

    def update(key, params: EliminationParams, state: State, report) -> State:
        arm, reward = report
        wins = state.private + jnp.where(every == arm, reward, 0).astype(state.private.dtype)
        return advance(key, params, state, wins, jnp.ones_like(state.public.position), length(state.public))

    def done(params: EliminationParams, public: Phase) -> jax.Array:
        del params
        return public.active.sum() == 1

    def plan_block(keys, params: EliminationParams, public: Phase, contexts, limit) -> BlockPlan:
        del params, contexts
        positions = public.position + jnp.arange(len(keys), dtype=public.position.dtype)
        actions = jax.vmap(lambda position: arm_at(public, position))(positions)
        return BlockPlan(actions, jnp.minimum(limit, length(public) - public.position))

    def update_block(keys, params: EliminationParams, state: State, plan: BlockPlan, report):
        actions, rewards = report
        planned = jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length
        paid = (actions[:, None] == every[None, :]) & (planned & (rewards > 0))[:, None]
        wins = state.private + paid.sum(0, dtype=state.private.dtype)
        return advance(keys[plan.length - 1], params, state, wins, plan.length, length(state.public)), plan.length

    def plan_counts(key, params: EliminationParams, public: Phase, limit) -> CountPlan:
        del key
        ahead = jnp.minimum(limit, length(public, params.extra_plays) - public.position)
        num_active = public.active.sum(dtype=ahead.dtype)
        ranks = jnp.cumsum(public.active, dtype=ahead.dtype) - 1

        def before(position: jax.Array) -> jax.Array:  # plays of each rank in positions 0 .. position - 1
            return (position - 1 - ranks) // num_active + 1

        return CountPlan(jnp.where(public.active, before(public.position + ahead) - before(public.position), 0))

    def privatize_counts(key, params: EliminationParams, public: Phase, plan: CountPlan, totals):
        del key, params, public
        return plan.counts, totals

    def update_counts(key, params: EliminationParams, state: State, plan: CountPlan, report) -> State:
        counts, won = report
        wins = state.private + won.astype(state.private.dtype)
        played = counts.sum(dtype=state.public.position.dtype)
        return advance(key, params, state, wins, played, length(state.public, params.extra_plays))

    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        done=done,
        blocks=(Blocks(block, plan_block, update_block),),
        counts=Counts(plan_counts, privatize_counts, update_counts),
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )


# ---- a learner that changes its mind within a block, and a world with a memory ---------------------------------------
@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class StayParams:
    """flip: [] float, probability that a user's report is wrong."""

    flip: Scalar


def stay_or_switch(*, num_arms: int, block: int = 16) -> Learner:
    """Stays with an arm while it pays, as users report by randomized response; otherwise goes to another one at random.

    Privacy: epsilon-DP in the local model, unit one round's reward.
    """

    def params(*, epsilon: float) -> StayParams:
        return StayParams(flip=scalar_leaf("flip", 1 / (1 + math.exp(check_epsilon(epsilon)))))

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon, trust_model="local", privacy_unit="one round's reward", argument="randomized response"
        )

    def init(key, params: StayParams) -> State:
        del params
        return State((), jax.random.randint(key, (), 0, num_arms, jnp.int32))

    def act(key, params: StayParams, public: jax.Array, context) -> jax.Array:
        del key, params, context
        return public

    def privatize(key, params: StayParams, public: jax.Array, context, action, feedback) -> jax.Array:
        del public, context, action
        flipped = jax.random.uniform(key) < params.flip
        return jnp.where(flipped, 1 - feedback, feedback)

    def update(key, params: StayParams, state: State, report) -> State:
        del params
        step = jax.random.randint(key, (), 1, num_arms, jnp.int32)
        return State((), jnp.where(report > 0, state.public, (state.public + step) % num_arms))

    def plan(keys, params: StayParams, public: jax.Array, contexts, limit) -> BlockPlan:
        del params, contexts
        return BlockPlan(jnp.broadcast_to(public, (len(keys),)), limit)

    def update_block(keys, params: StayParams, state: State, plan: BlockPlan, report) -> tuple[State, jax.Array]:
        failed = (report == 0) & (jnp.arange(len(keys), dtype=plan.length.dtype) < plan.length)
        used = jnp.where(failed.any(), jnp.argmax(failed).astype(plan.length.dtype) + 1, plan.length)
        return update(keys[used - 1], params, state, report[used - 1]), used

    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(Blocks(block, plan, update_block),),
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )

"""Learners of kinds that the library does not have yet, as small as they can be: the vocabulary must carry them."""

import math
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import (
    Environment,
    Guarantee,
    Interface,
    Learner,
    Probe,
    Space,
    State,
    arms,
    ball,
    default_float,
    guarantee_for,
)
from jaxdp.mechanisms import label_randomizer, moment_randomizer, scalar_randomizer, vector_randomizer
from jaxdp.numerics import compensated
from jaxdp.numerics.small_linear_algebra import symmetric_matrix

Pair = tuple[Learner, Environment]


# ---- two-point feedback ----------------------------------------------------------------------------------------------
OFFSET = 1e-3


class Point(NamedTuple):
    """[dim] float, where the learner is; [] integer, rounds played."""

    x: jax.Array
    round: jax.Array


def two_point(dim: int) -> Pair:
    """Descends a convex loss by noisy differences of its values at two points."""
    randomizer = scalar_randomizer("laplace")
    interface = Interface(Probe(ball(dim, 2.0), ball(dim, 2 * OFFSET)), Space("numbers"))
    target = np.full(dim, 0.4 / math.sqrt(dim), default_float())

    def direction(public: Point) -> jax.Array:  # public, and another one every round
        wave = jnp.cos((public.round + 1).astype(public.x.dtype) * jnp.arange(1, dim + 1, dtype=public.x.dtype))
        return wave / jnp.linalg.norm(wave)

    def init(key, params) -> State:
        del key, params
        return State((), Point(jnp.zeros(dim), jnp.zeros((), jnp.result_type(int))))

    def act(key, params, public: Point, context) -> Probe:
        del key, params, context
        return Probe(public.x, OFFSET * direction(public))

    def privatize(key, params, public, context, action: Probe, feedback):
        del public, context
        return action, randomizer.report(key, params, feedback / (2 * OFFSET))

    def update(key, params, state: State, report) -> State:
        del key, params
        probe, slope = report
        step = state.public.x - 0.5 * slope * probe.offset / OFFSET
        return State((), Point(step / jnp.maximum(jnp.linalg.norm(step), 1), state.public.round + 1))

    learner = Learner(
        params=partial(randomizer.params, low=-4.0, high=4.0),
        guarantee=partial(randomizer.guarantee, low=-4.0, high=4.0),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=interface,
    )

    def feedback(key, params, world, action: Probe):
        del key  # f(c + o) - f(c - o) for f(x) = |x - target|^2 / 2, without the cancellation
        lost = jnp.sum((action.centre - params) ** 2) / 2
        return world, 2 * jnp.sum((action.centre - params) * action.offset), {"pseudo_regret": lost}

    environment = Environment(
        params=lambda: target, init=lambda key, params: (), context=None, feedback=feedback, interface=interface
    )
    return learner, environment


# ---- full information, as a vector -----------------------------------------------------------------------------------
def full_information(dim: int) -> Pair:
    """Follows the noised sum of loss vectors to the other side of the ball; the world answers with the whole vector."""
    randomizer = vector_randomizer((dim,), "l1")
    interface = Interface(ball(dim), ball(dim, norm="l1"))

    def init(key, params) -> State:
        del key, params
        return State((), compensated.zero(jnp.zeros(dim)))

    def act(key, params, public: compensated.Sum, context) -> jax.Array:
        del key, params, context
        return -public.total / jnp.maximum(jnp.linalg.norm(public.total), 1)

    def privatize(key, params, public, context, action, feedback) -> jax.Array:
        del public, context, action
        return randomizer.report(key, params, feedback)

    def update(key, params, state: State, report) -> State:
        del key, params
        return State((), compensated.add(state.public, report))

    learner = Learner(
        params=randomizer.params,
        guarantee=randomizer.guarantee,
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=interface,
    )

    def feedback(key, params, world, action):
        losses = params * jax.random.uniform(key, (dim,), default_float())
        return world, losses, {"pseudo_regret": params @ action / 2 + jnp.linalg.norm(params) / 2}

    environment = Environment(
        params=lambda: np.full(dim, 1 / dim, default_float()),
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        interface=interface,
    )
    return learner, environment


# ---- contextual moments ----------------------------------------------------------------------------------------------
class Moments(NamedTuple):
    """The sums of users' reports: [dim, dim] sum of x x^T, [dim] sum of y x, [] integer reports."""

    square: jax.Array
    response: jax.Array
    reports: jax.Array


def contextual(num_arms: int, dim: int) -> Pair:
    """Plays the arm with the largest reward by ridge regression of noised moments; not even the action is reported."""
    randomizer = moment_randomizer(dim)
    interface = Interface(arms(num_arms), Space("numbers", (), -1, 1), Space("numbers", (num_arms, dim)))

    def init(key, params) -> State:
        del key, params
        return State((), Moments(jnp.eye(dim), jnp.zeros(dim), jnp.zeros((), jnp.result_type(int))))

    def act(key, params, public: Moments, context) -> jax.Array:
        del key
        noise = params.noise_stddev * jnp.sqrt(public.reports.astype(public.response.dtype))
        theta = jnp.linalg.solve(public.square + noise * jnp.eye(dim), public.response)
        return jnp.argmax(context @ theta).astype(jnp.int32)

    def privatize(key, params, public, context, action, feedback):
        del public
        return randomizer.report(key, params, (context[action], feedback))

    def update(key, params, state: State, report) -> State:
        del key
        old: Moments = state.public
        outer, cross = randomizer.estimate(params, report)
        return State((), Moments(old.square + symmetric_matrix(outer, dim), old.response + cross, old.reports + 1))

    learner = Learner(
        params=randomizer.params,
        guarantee=randomizer.guarantee,
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=interface,
    )

    def context(key, params, world):
        del world
        features = jax.random.normal(key, (num_arms, len(params)), params.dtype)
        features = features / jnp.linalg.norm(features, axis=1, keepdims=True)
        return features

    def feedback(key, params, world, action):
        # The world shows the same context to the learner and to itself: it is drawn from the round's own key.
        reward = jnp.tanh(jax.random.normal(key, (), params.dtype) / 4 + params[action % len(params)])
        return world, reward, {"pseudo_regret": params.max() - params[action % len(params)]}

    environment = Environment(
        params=lambda: np.linspace(0.1, 0.9, dim).astype(default_float()),
        init=lambda key, params: (),
        context=context,
        feedback=feedback,
        interface=interface,
    )
    return learner, environment


# ---- batches of a shuffler -------------------------------------------------------------------------------------------
class Server(NamedTuple):
    """The server's view: [num_arms] reported successes and plays, [] integer, the arm of this batch."""

    wins: jax.Array
    plays: jax.Array
    arm: jax.Array


class Shuffler(NamedTuple):
    """Reports of this batch so far, and successes among them, [] integer each: all that a shuffled batch shows."""

    reports: jax.Array
    wins: jax.Array


def shuffled(num_arms: int, batch: int) -> Pair:
    """Plays one arm a batch; the server gets a batch's randomized bits in random order, that is, their number."""
    randomizer = label_randomizer()

    def claim(epsilon: float) -> Guarantee:  # what amplification adds is left out: a valid claim, not a tight one
        return Guarantee.pure(
            epsilon,
            trust_model="shuffle",
            privacy_unit="one round's reward",
            argument="each bit is randomized before it is shuffled",
            batch=batch,
            local_epsilon=epsilon,
        )

    def init(key, params) -> State:
        del key, params
        integer = jnp.result_type(int)
        none, each = jnp.zeros((), integer), jnp.zeros(num_arms, integer)
        return State(Shuffler(none, none), Server(each, each, jnp.int32(0)))

    def act(key, params, public: Server, context) -> jax.Array:
        del key, params, context
        return public.arm

    def privatize(key, params, public, context, action, feedback) -> jax.Array:
        del public, context, action
        return randomizer.report(key, params, feedback)

    def update(key, params, state: State, report) -> State:
        del key, params
        private: Shuffler = state.private
        public: Server = state.public
        reports, wins = private.reports + 1, private.wins + report.astype(private.wins.dtype)
        full = reports == batch
        mine = jnp.arange(num_arms, dtype=jnp.int32) == public.arm
        totals = jnp.where(full & mine, jnp.stack([wins, reports])[:, None], 0)
        wins_, plays = public.wins + totals[0], public.plays + totals[1]
        hope = (wins_ + 2).astype(default_float()) / (plays + 2).astype(default_float())
        arm = jnp.where(full, jnp.argmax(hope).astype(jnp.int32), public.arm)
        kept = Shuffler(*(jnp.where(full, 0, count).astype(count.dtype) for count in (reports, wins)))
        return State(kept, Server(wins_, plays, arm))

    space = Space("integers", (), 0, 1)
    learner = Learner(
        params=randomizer.params,
        guarantee=guarantee_for(randomizer.params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=Interface(arms(num_arms), space),
        min_horizon=batch,
    )
    return learner, judging_bandit(num_arms)


# ---- a stopping time, and an answer ----------------------------------------------------------------------------------
def best_arm(num_arms: int, per_arm: int) -> Pair:
    """Plays arms in turn and stops once one is ahead by more than chance and noise explain; answers with it."""
    randomizer = label_randomizer()

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(epsilon, trust_model="local", privacy_unit="one reward", argument="randomized response")

    def init(key, params) -> State:
        del key, params
        return State((), (jnp.zeros(num_arms, jnp.result_type(int)), jnp.zeros((), jnp.result_type(int))))

    def act(key, params, public, context) -> jax.Array:
        del key, params, context
        return (public[1] % num_arms).astype(jnp.int32)

    def privatize(key, params, public, context, action, feedback):
        del public, context
        return action, randomizer.report(key, params, feedback)

    def update(key, params, state: State, report) -> State:
        del key, params
        (wins, played), (action, won) = state.public, report
        return State((), (wins.at[action].add(won.astype(wins.dtype)), played + 1))

    def done(params, public) -> jax.Array:
        wins, played = public
        best, second = jax.lax.top_k(wins, 2)[0]
        each = (played // num_arms).astype(default_float())
        lead = (best - second).astype(default_float()) / jnp.tanh(params.epsilon / 2)
        return (played % num_arms == 0) & (each >= per_arm) & (lead > jnp.sqrt(2 * each) / jnp.tanh(params.epsilon / 2))

    def recommend(params, public) -> jax.Array:
        del params
        return jnp.argmax(public[0]).astype(jnp.int32)

    learner = Learner(
        params=randomizer.params,
        guarantee=guarantee_for(randomizer.params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        done=done,
        recommend=recommend,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1), recommendation=arms(num_arms)),
    )
    return learner, judging_bandit(num_arms)


def judging_bandit(num_arms: int) -> Environment:
    """Builds arms that pay 0 or 1, the last one most often; it judges which arm is best."""

    def feedback(key, params, world, action):
        reward = (jax.random.uniform(key, dtype=params.dtype) < params[action]).astype(jnp.int32)
        return world, reward, {"pseudo_regret": params.max() - params[action]}

    def evaluate(params, world, recommendation):
        del world
        is_correct = recommendation == jnp.argmax(params).astype(recommendation.dtype)
        return {"correct": is_correct, "simple_regret": params.max() - params[recommendation]}

    return Environment(
        params=lambda: np.linspace(0.2, 0.8, num_arms).astype(default_float()),
        init=lambda key, params: (),
        context=None,
        feedback=feedback,
        evaluate=evaluate,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1), recommendation=arms(num_arms)),
    )

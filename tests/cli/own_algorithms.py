"""A user's own package: a learner, an estimator and two mechanisms; the second one has too little noise."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

import jaxdp
from jaxdp.audit import UserData
from jaxdp.core import Estimator, Guarantee, Interface, Learner, Space, State, arms, factory, guarantee_for, scalar_leaf
from jaxdp.mechanisms import debias_labels, laplace, randomized_response
from jaxdp.registry import EstimatorEntry, LearnerEntry, MechanismEntry
from jaxdp.validation import check_epsilon


@jax.tree_util.register_dataclass
@dataclass(frozen=True)
class Params:
    epsilon: Any


class Public(NamedTuple):
    plays: jax.Array
    wins: jax.Array


def params(*, epsilon: float) -> Params:
    return Params(scalar_leaf("epsilon", check_epsilon(epsilon)))


def claim(epsilon: float) -> Guarantee:
    return Guarantee.pure(epsilon, trust_model="local", privacy_unit="one label", argument="randomized response")


@factory
def follow_the_leader(*, num_arms: int) -> Learner:
    """Every arm once, then the one with the largest share of randomized wins."""

    def init(key, params):
        return State((), Public(jnp.zeros(num_arms, jnp.int32), jnp.zeros(num_arms, jnp.int32)))

    def act(key, params, public, context):
        share = public.wins.astype(float) / jnp.maximum(public.plays, 1).astype(float)
        return jnp.argmax(jnp.where(public.plays == 0, jnp.inf, share)).astype(jnp.int32)

    def privatize(key, params, public, context, action, feedback):
        return action, randomized_response(key, feedback, params.epsilon, num_labels=2)

    def update(key, params, state, report):
        action, won = report
        public = Public(state.public.plays.at[action].add(1), state.public.wins.at[action].add(won))
        return State((), public)

    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )


@factory
def share_of_ones() -> Estimator:
    """The share of labels that are 1, without bias."""

    def privatize(key, params, features, labels):
        return randomized_response(key, labels, params.epsilon, num_labels=2)

    def fit(key, params, features, report):
        return debias_labels(report, params.epsilon).mean()

    return Estimator(params=params, guarantee=guarantee_for(params, claim), privatize=privatize, fit=fit)


def noisy_count(key, params, data, *, times: float = 1.0):
    return laplace(key, data, params.epsilon * times, l1_sensitivity=1.0)


def counted(*, epsilon: float) -> Guarantee:
    return Guarantee.pure(epsilon, trust_model="central", privacy_unit="one record", argument="Laplace mechanism")


def bandit(num_arms: int) -> jaxdp.Environment:
    return jaxdp.bandits.bernoulli_bandit([0.8] + [0.2] * (num_arms - 1))


def neighbours(num_arms: int) -> tuple[UserData, UserData]:
    return UserData(np.zeros((1, num_arms), np.int32)), UserData(np.ones((1, num_arms), np.int32))


def draw_user(key: jax.Array, num_arms: int) -> UserData:
    return UserData(jax.random.bernoulli(key, shape=(num_arms,)).astype(jnp.int32))


def register() -> None:
    jaxdp.register(
        "follow_the_leader",
        LearnerEntry(
            summary="plays the arm with the most randomized wins",
            factory=follow_the_leader,
            sizes={"num_arms": 3},
            values={"epsilon": 1.0},
            environment=bandit,
            horizon=8,
            neighbours=neighbours,
            draw_user=draw_user,
        ),
    )
    jaxdp.register(
        "share_of_ones",
        EstimatorEntry(summary="estimates the share of ones", factory=share_of_ones, values={"epsilon": 1.0}),
    )
    for name, times in (("noisy_count", 1.0), ("quiet_count", 3.0)):
        entry = MechanismEntry(
            summary="adds Laplace noise to a count",
            sizes={"times": times},
            values={"epsilon": 1.0},
            params=params,
            guarantee=counted,
            release=noisy_count,
            neighbours=(np.float32(0), np.float32(1)),
            exact=lambda data: data,
        )
        jaxdp.register(name, entry)

"""Mistakes of elimination by optimal designs."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, feedback_of_pair, learner_attack
from jaxdp.core import Learner
from jaxdp.dueling import g_optimal_elimination
from tests.privacy.case import Case

VALUES = {"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 1e-5}  # a first phase of one duel
RIGHT = g_optimal_elimination(features=[[0.8], [-0.8]])


def _first_duel() -> tuple[UserData, UserData]:
    """Makes users who lose or win the first phase's only duel."""
    lost, won = (UserData(np.full((1, 2, 2), value, np.int32)) for value in (0, 1))
    return lost, won


def _at_epsilon(factor: float) -> Learner:
    """Calibrates the noise for another epsilon than the phases and the claim."""

    def update(key, params, state, report):
        return RIGHT.update(key, dataclasses.replace(params, epsilon=factor * params.epsilon), state, report)

    return RIGHT._replace(update=update)


def _case(factor: float, trials: int) -> Case:
    users = _first_duel()
    wrong, right = (learner_attack(one, VALUES, users, answer=feedback_of_pair) for one in (_at_epsilon(factor), RIGHT))
    return Case(wrong=wrong, right=(right,), trials=trials)


def phase_counts_without_noise() -> Case:
    return _case(jnp.inf, 4_000)


def phase_counts_at_twice_epsilon() -> Case:
    return _case(2.0, 20_000)


CASES = {
    "elimination by models of exact counts": phase_counts_without_noise,
    "counts of a phase at twice epsilon": phase_counts_at_twice_epsilon,
}

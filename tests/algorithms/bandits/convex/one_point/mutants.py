"""Mistakes of `one_point`."""

import dataclasses
from typing import Any

import numpy as np

from jaxdp.audit import UserData, full_information, learner_attack
from jaxdp.bandits.convex import fkm
from jaxdp.core import Learner
from jaxdp.mechanisms import laplace
from tests.privacy.case import Case

SIZES: Any = {"dim": 2, "horizon": 10}
VALUES = {"epsilon": 1.0}


def _ends(low: float, high: float) -> tuple[UserData, UserData]:
    """Makes users with one round, with one of two losses."""
    return UserData(np.array([low])), UserData(np.array([high]))


def _case(wrong: Learner, right: Learner, users: tuple[UserData, UserData], trials: int, **values: float) -> Case:
    attacks = [learner_attack(one, {**VALUES, **values}, users, answer=full_information) for one in (wrong, right)]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=trials)


def loss_unclipped() -> Case:
    """Adds noise for losses in [-1, 1] to larger losses, as published."""
    right = fkm(**SIZES, report="laplace")

    def privatize(key, params, public, context, action, feedback):
        return action, laplace(key, feedback, params.randomizer.epsilon, l1_sensitivity=2.0)

    return _case(right._replace(privatize=privatize), right, _ends(-7.0, 7.0), 4_000)


def losses_at_twice_epsilon() -> Case:
    right = fkm(**SIZES)

    def privatize(key, params, public, context, action, feedback):
        twice = dataclasses.replace(params.randomizer, epsilon=2 * params.randomizer.epsilon)
        return right.privatize(key, dataclasses.replace(params, randomizer=twice), public, context, action, feedback)

    return _case(right._replace(privatize=privatize), right, _ends(-7.0, 7.0), 2_000)


CASES = {
    "a loss reported without a clip": loss_unclipped,
    "losses reported at twice epsilon": losses_at_twice_epsilon,
}

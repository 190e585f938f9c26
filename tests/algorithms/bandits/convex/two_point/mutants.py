"""Mistakes of `two_point`."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, full_information, learner_attack
from jaxdp.bandits.convex import two_point
from jaxdp.core import Learner
from jaxdp.mechanisms import scalar_randomizer
from tests.privacy.case import Case

SIZES: Any = {"dim": 2, "horizon": 10}
VALUES = {"epsilon": 1.0}
HALF = 2**-0.5


def _ends(low: float, high: float) -> tuple[UserData, UserData]:
    """Makes users with one round, with one of two losses."""
    return UserData(np.array([low])), UserData(np.array([high]))


def _case(wrong: Learner, right: Learner, users: tuple[UserData, UserData], trials: int, **values: float) -> Case:
    attacks = [learner_attack(one, {**VALUES, **values}, users, answer=full_information) for one in (wrong, right)]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=trials)


def gaussian_without_its_root_of_2() -> Case:
    right = two_point(**SIZES, report="gaussian")

    def params(**values):
        made = right.params(**values)
        less = made.randomizer.noise_stddev * made.randomizer.noise_stddev.dtype.type(HALF)
        return dataclasses.replace(made, randomizer=dataclasses.replace(made.randomizer, noise_stddev=less))

    return _case(right._replace(params=params), right, _ends(-7.0, 7.0), 100_000, delta=0.05)


def same_noise_for_both_points() -> Case:
    """Adds to each of two losses the noise that one needs; its twin divides the budget, and draws again."""
    made, randomizer = two_point(**SIZES, report="laplace"), scalar_randomizer("laplace")

    def reporting(is_same: bool) -> Learner:
        def privatize(key, params, public, context, action, feedback):
            keys = (key, jax.random.clone(key)) if is_same else tuple(jax.random.split(key))
            share = 1.0 if is_same else 0.5
            told = dataclasses.replace(params.randomizer, epsilon=share * jnp.asarray(params.randomizer.epsilon))
            return action, [
                randomizer.report(k, told, sign * feedback / 2) for k, sign in zip(keys, (1, -1), strict=True)
            ]

        def update(key, params, state, report):
            return made.update(key, params, state, (report[0], report[1][0] - report[1][1]))

        return made._replace(privatize=privatize, update=update)

    return _case(reporting(True), reporting(False), _ends(-2.0, 2.0), 4_000)


CASES = {
    "a Gaussian report without its root of 2": gaussian_without_its_root_of_2,
    "the same noise for both points": same_noise_for_both_points,
}

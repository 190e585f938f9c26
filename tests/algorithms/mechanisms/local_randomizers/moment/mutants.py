"""Mistakes in the reports of contextual users."""

import math

import jax
import numpy as np

from jaxdp.audit import Attack
from jaxdp.mechanisms import moment_randomizer
from tests.privacy.case import Case, claim

RANDOMIZER = moment_randomizer(2)
# Two users (x, y): their x x^T differ off the diagonal alone, and their y x differ, too.
USERS = (np.asarray([1, 1, 1], np.float32), np.asarray([1, -1, -1], np.float32))
ROOT = math.sqrt(2)


def drawn_once(key, params, user):
    """Attacks by the statistic that separates the two users best: x_1 x_2 and y x_1, weighted by the variance of
    their noise.
    """
    outer, cross = RANDOMIZER.report(key, params, (user[:2], user[2]))
    return outer[1] * 2 + cross[0] * ROOT


def drawn_twice(key, params, user):
    """Adds noise to both halves of the matrix; symmetric, it shows the same numbers twice."""
    (outer, cross), (again, _) = (
        RANDOMIZER.report(each, params, (user[:2], user[2])) for each in jax.random.split(key)
    )
    return (outer[1] + again[1]) * 2 + cross[0] * ROOT


def noise_drawn_for_both_halves() -> Case:
    params = RANDOMIZER.params(epsilon=1.0, delta=1e-2)
    right = Attack(drawn_once, params, USERS, claim(1.0, 1e-2))
    return Case(wrong=right._replace(release=drawn_twice), right=(right,), trials=200_000)


CASES = {
    "noise drawn for both halves of a symmetric matrix": noise_drawn_for_both_halves,
}

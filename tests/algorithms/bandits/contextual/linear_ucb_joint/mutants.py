"""A mistake of contextual bandits under joint privacy."""

import math
from typing import Any

import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits.contextual import linear_ucb_joint
from jaxdp.bandits.contextual._linear_ucb_joint import joint_moments
from jaxdp.core import State
from jaxdp.numerics.fixed_point import to_float
from jaxdp.numerics.small_linear_algebra import cholesky_solve
from tests.privacy.case import Case

SIZES: Any = {"num_arms": 2, "dim": 2, "horizon": 2, "update_every": 1}
TILT = math.pi / 6  # of either user from the first axis: their matrices differ off the diagonal alone


def _users(rewards: tuple[float, float]) -> tuple[UserData, UserData]:
    """Makes one round with contexts at 60 degrees, the same for both arms."""
    first, second = (
        UserData(np.full((1, 2), reward), np.full((1, 2, 2), [math.cos(TILT), sign * math.sin(TILT)]))
        for reward, sign in zip(rewards, (1, -1), strict=True)
    )
    return first, second


def cross_without_noise() -> Case:
    """Counts x x^T with noise and y x without."""
    right = linear_ucb_joint(**SIZES)

    def update(key, params, state, report):
        after = right.update(key, params, state, report)
        model = after.public.model
        _, cross = joint_moments(to_float(after.private.total, model.theta.dtype), 2)
        theta = cholesky_solve(model.lower, params.reward_bound * cross)
        return State(after.private, after.public._replace(model=model._replace(theta=theta)))

    wrong, values = right._replace(update=update), {"epsilon": 1.0, "delta": 1e-2}
    attacks = [learner_attack(one, values, _users((1.0, -1.0))) for one in (wrong, right)]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=2_000)


CASES = {
    "contexts counted with noise and rewards without": cross_without_noise,
}

"""Mistakes of `lil_ucb`."""

import dataclasses

import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import lil_ucb
from tests.privacy.case import Case


def _rewards(low: float, high: float, dtype: type, rounds: int = 1) -> tuple[UserData, UserData]:
    """Makes rounds in which both arms pay the same reward, except the first round, in which they pay the other one."""
    same = np.full((rounds, 2), low, dtype)
    other = same.copy()
    other[0] = high
    return UserData(same), UserData(other)


def rewards_at_half_their_interval() -> Case:
    """Adds Gaussian noise for an interval of half the width."""
    right = lil_ucb(num_arms=2, report="gaussian", rewards="bounded")

    def params(**values):
        made = right.params(**values)
        half = made.randomizer.noise_stddev * made.randomizer.noise_stddev.dtype.type(0.5)
        return dataclasses.replace(made, randomizer=dataclasses.replace(made.randomizer, noise_stddev=half))

    values = {"epsilon": 1.0, "delta": 1e-2, "reward_low": -1.0, "reward_high": 2.0}
    wrong, twin = (
        learner_attack(one, values, _rewards(np.nan, 9.0, float)) for one in (right._replace(params=params), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=20_000)


CASES = {
    "rewards with noise for half their interval": rewards_at_half_their_interval,
}

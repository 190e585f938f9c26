"""Mistakes of `successive_elimination`."""

import dataclasses

import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import successive_elimination
from tests.privacy.case import Case


def _rewards(low: float, high: float, dtype: type, rounds: int = 1) -> tuple[UserData, UserData]:
    """Makes rounds in which both arms pay the same reward, except the first round, in which they pay the other one."""
    same = np.full((rounds, 2), low, dtype)
    other = same.copy()
    other[0] = high
    return UserData(same), UserData(other)


def counts_of_rewards_at_twice_epsilon() -> Case:
    """Draws single reports correctly, and totals at twice epsilon."""
    right = successive_elimination(num_arms=2)
    counts = right.counts
    assert counts is not None

    def privatize(key, params, public, plan, totals):
        twice = dataclasses.replace(params.randomizer, epsilon=2 * params.randomizer.epsilon)
        return counts.privatize(key, dataclasses.replace(params, randomizer=twice), public, plan, totals)

    values = {"epsilon": 1.0, "confidence_multiplier": 0.1}
    wrong, twin = (
        learner_attack(one, values, _rewards(0, 1, np.int32, 2), path="counts")
        for one in (right._replace(counts=counts._replace(privatize=privatize)), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=4_000)


CASES = {
    "counts of rewards at twice epsilon": counts_of_rewards_at_twice_epsilon,
}

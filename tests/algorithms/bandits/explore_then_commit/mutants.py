"""Mistakes of `explore_then_commit`."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import explore_then_commit
from tests.privacy.case import Case

VALUES = {"epsilon": 1.0}


def unnoised_choice() -> Case:
    """Commits to the arm with the largest total itself: one reward decides between two equal arms."""
    right = explore_then_commit(num_arms=2, explore_rounds=4)

    def update(key, params, state, report):
        return right.update(key, dataclasses.replace(params, epsilon=jnp.inf), state, report)

    ahead = np.asarray([[1, 0], [0, 0], [0, 0], [0, 1]], np.int32)
    behind = ahead.copy()
    behind[0, 0] = 0
    users = UserData(ahead), UserData(behind)
    wrong = learner_attack(right._replace(update=update), VALUES, users)
    return Case(wrong=wrong, right=(learner_attack(right, VALUES, users),), trials=1_000)


CASES = {
    "a learner that commits to the exact best arm": unnoised_choice,
}

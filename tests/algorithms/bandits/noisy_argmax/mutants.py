"""Mistakes of `noisy_argmax`."""

import dataclasses

import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import noisy_argmax
from tests.privacy.case import Case

VALUES = {"epsilon": 1.0}


def half_the_noise() -> Case:
    """Adds noise of mean 1 / (2 epsilon): enough if a reward moved a total by a half."""
    right = noisy_argmax(num_arms=2, num_rounds=2)

    def update(key, params, state, report):
        return right.update(key, dataclasses.replace(params, epsilon=2 * params.epsilon), state, report)

    behind = np.asarray([[0, 0], [0, 1]], np.int32)
    equal = np.asarray([[1, 0], [0, 1]], np.int32)
    users = UserData(behind), UserData(equal)
    wrong = learner_attack(right._replace(update=update), VALUES, users)
    return Case(wrong=wrong, right=(learner_attack(right, VALUES, users),), trials=4_000)


CASES = {
    "a best arm selected with half the noise": half_the_noise,
}

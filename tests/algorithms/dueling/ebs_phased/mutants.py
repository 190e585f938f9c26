"""Mistakes of `ebs_phased`."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, feedback_of_pair, learner_attack
from jaxdp.dueling import ebs_phased
from tests.privacy.case import Case


def unnoised_elimination() -> Case:
    """Drops arms by their counts themselves: arm 1 wins once, and arm 0 stays if it does, too."""
    right = ebs_phased(num_arms=2)
    values = {"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.0015}  # a first phase of four duels

    def update(key, params, state, report):
        return right.update(key, dataclasses.replace(params, epsilon=jnp.inf), state, report)

    once = np.zeros((4, 2, 2), np.int32)
    once[0, 0], once[1, 1] = 1, 1  # arms 0, 1, 0, 1 are on the left
    never = once.copy()
    never[0, 0] = 0
    users = UserData(once), UserData(never)
    wrong = learner_attack(right._replace(update=update), values, users, answer=feedback_of_pair)
    return Case(wrong=wrong, right=(learner_attack(right, values, users, answer=feedback_of_pair),), trials=4_000)


CASES = {
    "elimination by exact shares of wins": unnoised_elimination,
}

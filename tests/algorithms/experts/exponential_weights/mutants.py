"""Mistakes of `exponential_weights`."""

import numpy as np

from jaxdp.audit import UserData, full_information, learner_attack
from jaxdp.experts import exponential_weights
from jaxdp.mechanisms import laplace
from tests.privacy.case import Case

VALUES = {"epsilon": 1.0}


def unclipped_report() -> Case:
    """Adds noise for losses in [0, 1] to larger losses."""
    right = exponential_weights(num_experts=2, horizon=10)

    def privatize(key, params, public, context, action, feedback):
        return laplace(key, feedback, params.epsilon, l1_sensitivity=2.0)

    users = UserData(np.full((1, 2), -1.0)), UserData(np.full((1, 2), 2.0))
    attacks = (
        learner_attack(one, VALUES, users, answer=full_information)
        for one in (right._replace(privatize=privatize), right)
    )
    wrong, twin = attacks
    return Case(wrong=wrong, right=(twin,), trials=4_000)


CASES = {
    "a local report that forgets to clip": unclipped_report,
}

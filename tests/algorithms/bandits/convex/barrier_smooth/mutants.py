"""Mistakes of `barrier_smooth`."""

import numpy as np

from jaxdp.audit import UserData, full_information, learner_attack
from jaxdp.bandits.convex import barrier_smooth
from jaxdp.mechanisms import laplace
from tests.privacy.case import Case


def losses_of_a_barrier_unclipped() -> Case:
    """Adds noise for losses in [-1, 1] to larger losses, as published."""
    right = barrier_smooth(dim=2, horizon=10, report="laplace")

    def privatize(key, params, public, context, action, feedback):
        return action, laplace(key, feedback, params.randomizer.epsilon, l1_sensitivity=2.0)

    users = UserData(np.array([-7.0])), UserData(np.array([7.0]))
    wrong, twin = (
        learner_attack(one, {"epsilon": 1.0}, users, answer=full_information)
        for one in (right._replace(privatize=privatize), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=4_000)


CASES = {
    "losses within a barrier that are not clipped": losses_of_a_barrier_unclipped,
}

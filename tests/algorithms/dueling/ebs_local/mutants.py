"""Mistakes of `ebs_local`."""

import dataclasses

import numpy as np

from jaxdp.audit import UserData, feedback_of_pair, learner_attack
from jaxdp.dueling import ebs_local
from tests.privacy.case import Case


def responses_at_twice_epsilon() -> Case:
    right = ebs_local(num_arms=2, horizon=10)

    def privatize(key, params, public, context, action, feedback):
        twice = dataclasses.replace(params, epsilon=2 * params.epsilon)
        return right.privatize(key, twice, public, context, action, feedback)

    users = UserData(np.zeros((1, 2, 2), np.int32)), UserData(np.ones((1, 2, 2), np.int32))
    wrong, twin = (
        learner_attack(one, {"epsilon": 1.0}, users, answer=feedback_of_pair)
        for one in (right._replace(privatize=privatize), right)
    )
    return Case(wrong=wrong, right=(twin,), trials=2_000)


CASES = {
    "outcomes of duels reported at twice epsilon": responses_at_twice_epsilon,
}

"""Mistakes of `pairwise_elimination`."""

import dataclasses

import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits import pairwise_elimination
from tests.privacy.case import Case


def reports_at_twice_epsilon() -> Case:
    """Draws reports at twice epsilon, by rounds or as totals."""
    right = pairwise_elimination(num_arms=2)
    assert right.counts is not None

    def double_epsilon(params):
        randomizer = dataclasses.replace(params.randomizer, epsilon=2 * params.randomizer.epsilon)
        return dataclasses.replace(params, randomizer=randomizer)

    def privatize(key, params, public, context, action, feedback):
        return right.privatize(key, double_epsilon(params), public, context, action, feedback)

    def privatize_counts(key, params, public, plan, totals):
        assert right.counts is not None
        return right.counts.privatize(key, double_epsilon(params), public, plan, totals)

    wrong = right._replace(privatize=privatize, counts=right.counts._replace(privatize=privatize_counts))
    rewards = np.zeros((2, 2), np.int32)
    users = UserData(rewards), UserData(np.asarray([[1, 1], [0, 0]], np.int32))  # the first user's rewards differ
    attacks = [
        learner_attack(learner, {"epsilon": 1.0, "failure_prob": 0.9}, users, path=path)
        for learner in (wrong, right)
        for path in ("rounds", "counts")
    ]
    return Case(wrong=attacks[0], right=tuple(attacks[2:]), trials=4_000)


CASES = {"reports of pairs at twice epsilon": reports_at_twice_epsilon}

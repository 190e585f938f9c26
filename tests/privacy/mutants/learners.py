"""Mistakes of interactive learners."""

import dataclasses

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Users, learner_attack, whole
from jaxdp.bandits import explore_then_commit
from jaxdp.experts import exponential_weights
from jaxdp.mechanisms import laplace
from tests.audit.small_learners import pair_of_releases
from tests.privacy.mutants.case import Case

VALUES = {"epsilon": 1.0}


def unnoised_choice() -> Case:
    """Commits to the arm with the largest total itself: one reward decides between two equal arms."""
    right = explore_then_commit(num_arms=2, explore_rounds=4)

    def update(key, params, state, report):
        return right.update(key, dataclasses.replace(params, epsilon=jnp.inf), state, report)

    ahead = np.asarray([[1, 0], [0, 0], [0, 0], [0, 1]], np.int32)
    behind = ahead.copy()
    behind[0, 0] = 0
    users = Users(ahead), Users(behind)
    wrong = learner_attack(right._replace(update=update), VALUES, users)
    return Case(wrong=wrong, right=(learner_attack(right, VALUES, users),), trials=1_000)


def reused_key() -> Case:
    """Noises two numbers with the round's one key: their difference is exact."""
    users = Users(np.asarray([[0.0, 1.0]])), Users(np.asarray([[1.0, 0.0]]))
    wrong, right = (learner_attack(pair_of_releases(reuse_key=r), VALUES, users, answer=whole) for r in (True, False))
    return Case(wrong=wrong, right=(right,), trials=4_000)


def unclipped_report() -> Case:
    """Noise for losses in [0, 1] on losses that are not."""
    right = exponential_weights(num_experts=2, horizon=10)

    def privatize(key, params, public, context, action, feedback):
        return laplace(key, feedback, params.epsilon, l1_sensitivity=2.0)

    users = Users(np.full((1, 2), -1.0)), Users(np.full((1, 2), 2.0))
    attacks = (learner_attack(one, VALUES, users, answer=whole) for one in (right._replace(privatize=privatize), right))
    wrong, twin = attacks
    return Case(wrong=wrong, right=(twin,), trials=4_000)

"""Mistakes of interactive learners."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Users, learner_attack, whole
from jaxdp.bandits import explore_then_commit, thompson, ucb_central
from jaxdp.core import Interface, Space, arms
from jaxdp.experts import exponential_weights
from jaxdp.mechanisms import laplace, randomized_response
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


def reused_coin() -> Case:
    """A reward by two bits, whether it is above 1/3 and above 2/3, at half the budget each, turned by a single coin."""
    bits = thompson(num_arms=2)

    def learner(*, reuse: bool):
        def privatize(key, params, public, context, action, feedback):
            keys = jnp.stack([key, key]) if reuse else jax.random.split(key)
            above = (feedback > jnp.asarray([1 / 3, 2 / 3], feedback.dtype)).astype(jnp.int32)
            half = params.report.epsilon / 2
            told = [randomized_response(keys[index], above[index], half) for index in range(2)]
            return action, jnp.stack(told)

        def update(key, params, state, report):
            arm, told = report
            return bits.update(key, params, state, (arm, told.sum().astype(state.public.sums.total.dtype) / 2))

        interface = Interface(arms(2), Space("numbers", (), 0, 1))
        return bits._replace(privatize=privatize, update=update, interface=interface)

    users = Users(np.full((1, 2), 0.0)), Users(np.full((1, 2), 0.5))
    wrong, right = (learner_attack(learner(reuse=reuse), VALUES, users) for reuse in (True, False))
    return Case(wrong=wrong, right=(right,), trials=4_000)


def block_released_twice() -> Case:
    """The total of a block is released with noise, and again when the next arm is chosen: the mean of both counts."""
    right = ucb_central(num_arms=2)

    def update(key, params, state, report):
        once, again = (right.update(each, params, state, report) for each in jax.random.split(key))
        sums = jax.tree.map(lambda first, second: (first + second) / 2, once.public.sums, again.public.sums)
        return once._replace(public=once.public._replace(sums=sums))

    never = np.ones((1, 2), np.int32)
    users = Users(never - 1), Users(never)
    wrong = learner_attack(right._replace(update=update), VALUES, users)
    return Case(wrong=wrong, right=(learner_attack(right, VALUES, users),), trials=20_000)

"""Mistakes of `greedy_sgd`."""

import dataclasses
from typing import Any

import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits.contextual import greedy_sgd
from jaxdp.core import Learner
from tests.privacy.case import Case

RIGHT = greedy_sgd(num_arms=2, dim=2)
VALUES = {"epsilon": 1.0}
UNIT = np.array([[0.6, 0.8], [0.6, 0.8]])


def _case(wrong: Learner, contexts: np.ndarray, rewards: tuple[float, float]) -> Case:
    """Builds a case of one round, with users who differ in the reward alone."""
    first, second = (UserData(np.full((1, 2), reward), contexts[None]) for reward in rewards)
    attacks = [learner_attack(learner, VALUES, (first, second)) for learner in (wrong, RIGHT)]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=4_000)


def reports_at_twice_epsilon() -> Case:
    """Draws reports at twice epsilon."""

    def privatize(key, params, public, context, action, feedback):
        return RIGHT.privatize(
            key, dataclasses.replace(params, epsilon=2 * params.epsilon), public, context, action, feedback
        )

    return _case(RIGHT._replace(privatize=privatize), UNIT, (-1.0, 1.0))


def length_of_the_gradient_in_the_report() -> Case:
    """Multiplies the report by the length of the gradient, so that long gradients have long reports."""

    def privatize(key, params, public, context, action, feedback):
        report = RIGHT.privatize(key, params, public, context, action, feedback)
        return report * jnp.abs(feedback)

    return _case(RIGHT._replace(privatize=privatize), UNIT, (0.2, 1.0))


def noise_added_to_gradients_of_any_length() -> Case:
    """Adds the report of a zero gradient to a gradient that is not cut."""

    def privatize(key, params, public, context, action, feedback):
        noise = RIGHT.privatize(key, params, public, context, action, jnp.zeros_like(feedback))
        return noise - feedback * context[action]

    return _case(RIGHT._replace(privatize=privatize), UNIT, (-30.0, 30.0))


def residual_beside_the_report() -> Case:
    """Sends the sign of the residual, by which the server checks its model."""

    def privatize(key: Any, params, public, context, action, feedback):
        return RIGHT.privatize(key, params, public, context, action, feedback), jnp.sign(feedback)

    def update(key, params, state, report):
        return RIGHT.update(key, params, state, report[0])

    return _case(RIGHT._replace(privatize=privatize, update=update), UNIT, (-1.0, 1.0))


CASES = {
    "gradients reported at twice epsilon": reports_at_twice_epsilon,
    "the length of a gradient in its report": length_of_the_gradient_in_the_report,
    "noise added to gradients of any length": noise_added_to_gradients_of_any_length,
    "the sign of a residual beside its report": residual_beside_the_report,
}

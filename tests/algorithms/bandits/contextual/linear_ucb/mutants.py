"""Mistakes of contextual bandits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits.contextual import linear_ucb
from jaxdp.core import Learner
from jaxdp.mechanisms import Moments
from jaxdp.numerics.small_linear_algebra import square_triangle
from tests.privacy.case import Case

SIZES: Any = {"num_arms": 2, "dim": 2, "horizon": 5}
VALUES = {"epsilon": 1.0, "delta": 1e-2}
UNIT = np.array([[0.6, 0.8], [0.6, 0.8]])


def _users(*told: tuple[np.ndarray, float]) -> tuple[UserData, UserData]:
    """One round each: contexts [2, 2], and what either arm pays."""
    first, second = (UserData(np.full((1, 2), reward), contexts[None]) for contexts, reward in told)
    return first, second


def _case(wrong: Learner, users: tuple[UserData, UserData], trials: int) -> Case:
    attacks = [learner_attack(one, VALUES, users) for one in (wrong, linear_ucb(**SIZES))]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=trials)


def _noise(key: jax.Array, params: Any, right: Learner, public: Any) -> Moments:
    """What a report adds to the moments."""
    nothing = jnp.zeros((2, 2), jnp.result_type(float))
    return right.privatize(key, params, public, nothing, 0, nothing[0, 0])


def reward_unclipped() -> Case:
    """Noise for rewards in [-1, 1] on rewards that are not."""
    right = linear_ucb(**SIZES)

    def privatize(key, params, public, context, action, feedback):
        x, noise = context[action], _noise(key, params, right, public)
        return Moments(noise.outer + square_triangle(x), noise.cross + feedback * x)

    return _case(right._replace(privatize=privatize), _users((UNIT, -30.0), (UNIT, 30.0)), 2_000)


def context_unclipped() -> Case:
    """Noise for contexts of unit length on longer ones."""
    right = linear_ucb(**SIZES)

    def privatize(key, params, public, context, action, feedback):
        x, noise = context[action], _noise(key, params, right, public)
        y = jnp.clip(feedback, -1, 1)
        return Moments(noise.outer + square_triangle(x), noise.cross + y * x)

    return _case(right._replace(privatize=privatize), _users((UNIT, 0.5), (6 * UNIT, 0.5)), 2_000)


def chosen_action_in_the_report() -> Case:
    """The action follows from the user's contexts, and tells of them."""
    right = linear_ucb(**SIZES)

    def privatize(key, params, public, context, action, feedback):
        return action, right.privatize(key, params, public, context, action, feedback)

    def update(key, params, state, report):
        return right.update(key, params, state, report[1])

    wrong = right._replace(privatize=privatize, update=update)
    longer = np.array([[0.6, 0.8], [0.0, 0.0]])
    return _case(wrong, _users((longer, 0.0), (longer[::-1].copy(), 0.0)), 2_000)


def rewards_without_noise() -> Case:
    """x x^T is noised, and y x is not."""
    right = linear_ucb(**SIZES)

    def privatize(key, params, public, context, action, feedback):
        noisy = right.privatize(key, params, public, context, action, feedback)
        return Moments(noisy.outer, jnp.clip(feedback, -1, 1) * context[action])

    return _case(right._replace(privatize=privatize), _users((UNIT, -1.0), (UNIT, 1.0)), 2_000)


CASES = {
    "a contextual reward that is not clipped": reward_unclipped,
    "a context that is not scaled down": context_unclipped,
    "the chosen action beside the report": chosen_action_in_the_report,
    "contexts noised and rewards not": rewards_without_noise,
}

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
    """Makes one round for each user: contexts [2, 2], and the rewards of both arms."""
    first, second = (UserData(np.full((1, 2), reward), contexts[None]) for contexts, reward in told)
    return first, second


def _case(wrong: Learner, users: tuple[UserData, UserData], trials: int) -> Case:
    attacks = [learner_attack(one, VALUES, users) for one in (wrong, linear_ucb(**SIZES))]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=trials)


def _noise(key: jax.Array, params: Any, right: Learner, public: Any) -> Moments:
    """Draws the noise that a report adds to the moments."""
    nothing = jnp.zeros((2, 2), jnp.result_type(float))
    return right.privatize(key, params, public, nothing, 0, nothing[0, 0])


def reward_unclipped() -> Case:
    """Adds noise for rewards in [-1, 1] to larger rewards."""
    right = linear_ucb(**SIZES)

    def privatize(key, params, public, context, action, feedback):
        x, noise = context[action], _noise(key, params, right, public)
        return Moments(noise.outer + square_triangle(x), noise.cross + feedback * x)

    return _case(right._replace(privatize=privatize), _users((UNIT, -30.0), (UNIT, 30.0)), 2_000)


def context_unclipped() -> Case:
    """Adds noise for contexts of unit length to longer contexts."""
    right = linear_ucb(**SIZES)

    def privatize(key, params, public, context, action, feedback):
        x, noise = context[action], _noise(key, params, right, public)
        y = jnp.clip(feedback, -1, 1)
        return Moments(noise.outer + square_triangle(x), noise.cross + y * x)

    return _case(right._replace(privatize=privatize), _users((UNIT, 0.5), (6 * UNIT, 0.5)), 2_000)


def chosen_action_in_the_report() -> Case:
    """Lets the action depend on the user's contexts, so that it reveals them."""
    right = linear_ucb(**SIZES)

    def privatize(key, params, public, context, action, feedback):
        return action, right.privatize(key, params, public, context, action, feedback)

    def update(key, params, state, report):
        return right.update(key, params, state, report[1])

    wrong = right._replace(privatize=privatize, update=update)
    longer = np.array([[0.6, 0.8], [0.0, 0.0]])
    return _case(wrong, _users((longer, 0.0), (longer[::-1].copy(), 0.0)), 2_000)


def rewards_without_noise() -> Case:
    """Adds noise to x x^T but not to y x."""
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

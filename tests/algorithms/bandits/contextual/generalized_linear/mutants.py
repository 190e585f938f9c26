"""Mistakes of generalized linear bandits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData, learner_attack
from jaxdp.bandits.contextual import generalized_linear
from jaxdp.core import Learner, default_float
from jaxdp.mechanisms import Moments
from jaxdp.numerics.small_linear_algebra import square_triangle
from tests.privacy.case import Case

SIZES: Any = {"num_arms": 2, "dim": 2, "horizon": 5}
VALUES = {"epsilon": 1.0, "delta": 1e-2}
BOUND = 3.0  # of residuals: 2 C + 1 at C = 1


def _case(clip: float, noise_share: float, reward: float, trials: int) -> Case:
    """Builds a case: residuals are clipped to [-clip, clip], with a share of the noise that residuals in [-3, 3] need.

    The users differ in the sign of the reward alone.
    """
    right = generalized_linear(**SIZES)

    def privatize(key, params, public, context, action, feedback):
        x = context[action]
        noise = right.privatize(key, params, public, jnp.zeros_like(context), 0, jnp.zeros_like(feedback))
        residual = jax.nn.sigmoid(jnp.sum(x * public.iterate)) - feedback
        cross = jnp.clip(residual, -clip, clip) * x + noise_share * noise.cross
        return Moments(noise.outer + square_triangle(x), cross)

    wrong: Learner = right._replace(privatize=privatize)
    context = np.full((1, 2, 2), 0.5**0.5, default_float())
    users = tuple(UserData(np.full((1, 2), sign * reward), context) for sign in (-1, 1))
    attacks = [learner_attack(one, VALUES, users) for one in (wrong, right)]  # pyright: ignore[reportArgumentType]
    return Case(wrong=attacks[0], right=(attacks[1],), trials=trials)


def gradients_with_noise_for_the_mean_alone() -> Case:
    """Adds noise for residuals of at most C, as published; they can be as large as 2 C + 1."""
    return _case(BOUND, 1 / BOUND, 7.0, 2_000)


def residual_unclipped() -> Case:
    """Adds noise for residuals in [-3, 3] to residuals of larger rewards."""
    return _case(np.inf, 1.0, 90.0, 2_000)


CASES = {
    "gradients with noise for C in place of 2 C + 1": gradients_with_noise_for_the_mean_alone,
    "a residual that is not clipped": residual_unclipped,
}

"""Mistakes of `noisy_max`."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from jaxdp.mechanisms import noisy_max, noisy_min
from tests.privacy.case import Case, claim


def best_of(key, sensitivity, scores):
    return noisy_max(key, scores, 1.0, sensitivity=sensitivity)


def least_of(key, epsilon, scores):
    return noisy_min(key, scores, epsilon)


def wrong_sign(key, epsilon, scores):
    """Raises the smallest score by one-sided noise, which hides it: log ratio up to (N - 1) epsilon."""
    return jnp.argmin(scores + 2 / epsilon * jax.random.exponential(key, scores.shape, scores.dtype))


def half_the_sensitivity() -> Case:
    """Adds noise for scores that move by 1 to scores that move by 2."""
    scores = (np.asarray([2, 0, 0, 0], np.float32), np.asarray([0, 2, 2, 2], np.float32))
    right = Attack(best_of, np.float32(2), scores, claim(1.0))
    return Case(wrong=right._replace(params=np.float32(1)), right=(right,), trials=4_000)


def argmin_plus_exponential() -> Case:
    scores = (np.zeros(4, np.float32), np.asarray([1, -1, -1, -1], np.float32))
    right = Attack(least_of, np.float32(1), scores, claim(1.0))
    return Case(wrong=right._replace(release=wrong_sign), right=(right,), trials=10_000)


CASES = {
    "noisy max on scores of sensitivity 2": half_the_sensitivity,
    "argmin of score plus exponential": argmin_plus_exponential,
}

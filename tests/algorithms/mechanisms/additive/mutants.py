"""Mistakes of `additive`."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from jaxdp.mechanisms import analytic_gaussian, gaussian, k_norm, laplace
from tests.privacy.case import Case, claim


def noisy_count(key, epsilon, count):
    return laplace(key, count, epsilon, l1_sensitivity=1.0)


def noisy_sum(key, noise_stddev, halves):
    return jnp.sum(gaussian(key, halves, noise_stddev))


def small_laplace() -> Case:
    right = Attack(noisy_count, np.float32(1), (np.float32(0), np.float32(1)), claim(1.0))
    return Case(wrong=right._replace(params=np.float32(1 / 0.8)), right=(right,), trials=10_000)


def classical_gaussian() -> Case:
    """Spends delta = 1.31e-3 in place of 1e-3, on an event with probability 6e-7 under the other input.

    The release is a sum of two coordinates, because one normal number in float32 has steps of 1.2e-7 in its tail
    probability: alone, its rounding would break the twin's claim.
    """
    zeros = np.zeros(2, np.float32)
    neighbours, spent = (zeros, zeros + np.float32(0.5**0.5)), claim(8.0, 1e-3)
    right = Attack(noisy_sum, np.float32(analytic_gaussian(8.0, 1e-3)), neighbours, spent)
    classical = np.sqrt(2 * np.log(1.25 / 1e-3)) / 8
    return Case(wrong=right._replace(params=np.float32(classical)), right=(right,), trials=1_500_000_000)


def one_dimension_less(key, epsilon, value):
    """Draws the length Gamma(d - 1), which makes noise of unbounded density."""
    key_length, key_direction = jax.random.split(key)
    length = jax.random.exponential(key_length, dtype=value.dtype)
    direction = jax.random.normal(key_direction, (2,), value.dtype)
    return value + length / epsilon * direction / jnp.linalg.norm(direction)


def gamma_of_one_dimension_less() -> Case:
    zeros = np.zeros(2, np.float32)
    right = Attack(
        lambda key, epsilon, value: k_norm(key, value, epsilon, sensitivity=1.0),
        np.float32(1),
        (zeros, np.asarray([0, 1], np.float32)),
        claim(1.0),
    )
    return Case(wrong=right._replace(release=one_dimension_less), right=(right,), trials=40_000)


CASES = {
    "Laplace at 0.8 of its scale": small_laplace,
    "classical Gaussian at epsilon 8": classical_gaussian,
    "K-norm noise of one dimension less": gamma_of_one_dimension_less,
}

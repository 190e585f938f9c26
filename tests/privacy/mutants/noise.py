"""Mistakes in the size of noise."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Attack
from jaxdp.estimation import objective_perturbation
from jaxdp.mechanisms import analytic_gaussian, gaussian, laplace, randomized_response
from tests.privacy.mutants.case import Case, claim


def coin_twice(key, epsilon, label):
    """Keeps the label with the probability of telling the truth, else reports a coin: which may be the truth again."""
    key_keep, key_coin = jax.random.split(key)
    kept = jax.random.bernoulli(key_keep, jax.nn.sigmoid(epsilon))
    return jnp.where(kept, label, jax.random.bernoulli(key_coin).astype(label.dtype))


def noisy_count(key, epsilon, count):
    return laplace(key, count, epsilon, l1_sensitivity=1.0)


def noisy_sum(key, noise_stddev, halves):
    return jnp.sum(gaussian(key, halves, noise_stddev))


ESTIMATOR = objective_perturbation()
FEATURES = np.asarray([[1.0, 0.0], [0.3, 0.4]], np.float32)


def noisy_statistic(key, params, labels):
    return ESTIMATOR.privatize(key, params, jnp.asarray(FEATURES), labels)


def wrong_randomized_response() -> Case:
    labels, epsilon = (np.int32(0), np.int32(1)), np.float32(1)
    right = Attack(randomized_response, epsilon, labels, claim(1.0))
    return Case(
        wrong=right._replace(release=coin_twice),
        right=(right._replace(release=lambda key, epsilon, label: randomized_response(key, label, epsilon)),),
        trials=2_000,
    )


def small_laplace() -> Case:
    right = Attack(noisy_count, np.float32(1), (np.float32(0), np.float32(1)), claim(1.0))
    return Case(wrong=right._replace(params=np.float32(1 / 0.8)), right=(right,), trials=10_000)


def classical_gaussian() -> Case:
    """Spends delta = 1.31e-3 in place of 1e-3, on an event which the other input makes 6e-7 likely.

    The sum of two coordinates, because one normal number in float32 has steps of 1.2e-7 in its tail probability: by
    itself, its rounding would break the twin's claim.
    """
    zeros = np.zeros(2, np.float32)
    neighbours, spent = (zeros, zeros + np.float32(0.5**0.5)), claim(8.0, 1e-3)
    right = Attack(noisy_sum, np.float32(analytic_gaussian(8.0, 1e-3)), neighbours, spent)
    classical = np.sqrt(2 * np.log(1.25 / 1e-3)) / 8
    return Case(wrong=right._replace(params=np.float32(classical)), right=(right,), trials=1_500_000_000)


def half_the_objective_perturbation() -> Case:
    labels = (np.asarray([0, 1], np.int32), np.asarray([1, 1], np.int32))
    params = ESTIMATOR.params(epsilon=1.0, delta=1e-3)
    half = dataclasses.replace(params, noise_multiplier=params.noise_multiplier / 2)
    right = Attack(noisy_statistic, params, labels, claim(1.0, 1e-3))
    return Case(wrong=right._replace(params=half), right=(right,), trials=40_000)

"""Intervals of estimates cover the truth, and are refused or warned of where they do not."""

import functools
import math
import warnings
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp import estimation
from jaxdp.estimation import estimate
from jaxdp.estimation._estimate import _warn_intervals
from jaxdp.estimation.label_noise import LabelNoise
from jaxdp.estimation.sandwich import Covariance, statistic_covariance

THETA = jnp.asarray([0.5, -0.3, 0.8])
QUANTILE = 1.959964
ESTIMATORS = {
    "debiased_rr": (estimation.debiased_rr(), {}),
    "mle_rr": (estimation.mle_rr(), {}),
    "objective_perturbation": (estimation.objective_perturbation(), {"delta": 1e-6}),
    "objective_perturbation_k_norm": (estimation.objective_perturbation(noise="k_norm"), {}),
}


def draw(key, num_samples, theta=THETA):
    key_features, key_labels = jax.random.split(key)
    features = jax.random.normal(key_features, (num_samples, len(theta)))
    labels = jax.random.uniform(key_labels, (num_samples,)) < jax.nn.sigmoid(features @ theta)
    return features, labels.astype(jnp.int32)


def covariance_of(estimator):
    assert estimator.covariance is not None
    return estimator.covariance


@functools.cache
def coverage(name, epsilon, num_samples, runs, has_noise=True):
    """Returns the share of runs and parameters in which the interval covers the truth."""
    estimator, values = ESTIMATORS[name]
    params = estimator.params(epsilon=epsilon, **values)

    def covers(key):
        key_data, key_labels, key_fit = jax.random.split(key, 3)
        features, labels = draw(key_data, num_samples)
        report = estimator.privatize(key_labels, params, features, labels)
        theta = estimator.fit(key_fit, params, features, report).theta
        if has_noise:
            matrix = covariance_of(estimator)(params, features, report, theta).matrix
        else:  # the planted mistake: the curator's noise is left out
            zero = jnp.zeros(())
            matrix = statistic_covariance(features, theta, LabelNoise(jnp.ones(()), zero, zero)).matrix
        return jnp.abs(theta - THETA) < QUANTILE * jnp.sqrt(jnp.diag(matrix))

    return float(jax.lax.map(covers, jax.random.split(jax.random.key(1), runs), batch_size=50).mean())


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.parametrize("epsilon", [0.5, 1.0, 4.0])
@pytest.mark.parametrize(("num_samples", "low", "high"), [(5_000, 0.935, 0.97), (20_000, 0.94, 0.96)])
def test_intervals_cover_the_truth(name, epsilon, num_samples, low, high):
    assert low <= coverage(name, epsilon, num_samples, 2_000) <= high


@pytest.mark.parametrize("name", ESTIMATORS)
def test_intervals_of_few_samples_cover_about_as_often(name):
    runs = 300
    error = 5 * math.sqrt(0.95 * 0.05 / runs)  # three parameters a run: less than this
    assert abs(coverage(name, 1.0, 1_000, runs) - 0.955) < error


@pytest.mark.parametrize("num_samples", [1_000, 5_000])
def test_intervals_without_the_curator_s_noise_are_too_short(num_samples):
    assert coverage("objective_perturbation", 0.5, num_samples, 300, has_noise=False) <= 0.8


def test_sandwiches_are_those_of_plain_formulas():
    """H and M in NumPy's float64, sample by sample, with de-biased reports as targets."""
    estimator, epsilon = estimation.debiased_rr(), 1.0
    features, labels = draw(jax.random.key(3), 400)
    params = estimator.params(epsilon=epsilon)
    report = estimator.privatize(jax.random.key(4), params, features, labels)
    theta = estimator.fit(jax.random.key(5), params, features, report).theta
    x, z = np.asarray(features, np.float64), np.asarray(features, np.float64) @ np.asarray(theta, np.float64)
    truth = 1 / (1 + math.exp(-epsilon))
    target = (np.asarray(report, np.float64) - (1 - truth)) / (2 * truth - 1)
    sigma = 1 / (1 + np.exp(-z))
    curvature = sum(s * (1 - s) * np.outer(row, row) for s, row in zip(sigma, x, strict=True)) / len(x)
    middle = sum((s - y) ** 2 * np.outer(row, row) for s, y, row in zip(sigma, target, x, strict=True)) / len(x)
    inverse = np.linalg.inv(curvature)
    expected = inverse @ middle @ inverse / len(x)
    covariance = covariance_of(estimator)(params, features, report, theta)
    np.testing.assert_allclose(covariance.matrix, expected, rtol=1e-4)
    assert bool(covariance.is_robust)


def test_fisher_information_replaces_a_curvature_that_is_not_positive():
    """Ones where the parameter predicts zeros: the likelihood of reports is not convex there."""
    estimator = estimation.mle_rr()
    features = jnp.asarray([[1.0], [1.5], [2.0]] * 30)
    labels = jnp.ones(90, jnp.int32)
    params = estimator.params(epsilon=0.5)
    theta = jnp.asarray([-1.0])
    covariance = covariance_of(estimator)(params, features, labels, theta)
    assert not bool(covariance.is_robust)
    truth = 1 / (1 + math.exp(-0.5))
    margins = np.asarray(-features[:, 0], np.float64)
    sigma = 1 / (1 + np.exp(-margins))
    report = truth * sigma + (1 - truth) * (1 - sigma)
    information = ((2 * truth - 1) * sigma * (1 - sigma)) ** 2 / (report * (1 - report))
    expected = 1 / (information * np.asarray(features[:, 0]) ** 2).sum()
    assert float(covariance.matrix[0, 0]) == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_estimate_returns_standard_errors_and_intervals(epsilon):
    features, labels = draw(jax.random.key(0), 500)
    plain = estimate(estimation.debiased_rr(), features, labels, key=jax.random.key(1), epsilon=epsilon)
    assert plain.stderr is None
    ask: dict[str, Any] = {"key": jax.random.key(1), "epsilon": epsilon, "intervals": "sandwich"}
    result = estimate(estimation.debiased_rr(), features, labels, **ask)
    np.testing.assert_array_equal(result.theta, plain.theta)
    assert result.interval is not None
    np.testing.assert_allclose(
        (result.interval[:, 1] - result.interval[:, 0]) / 2, QUANTILE * jnp.asarray(result.stderr), rtol=1e-4
    )
    wide = estimate(estimation.debiased_rr(), features, labels, confidence=0.999, **ask)
    assert wide.interval is not None
    assert bool((wide.interval[:, 1] > result.interval[:, 1]).all())


def test_zero_sum_parameters_have_no_variance_along_their_sum():
    features, labels = draw(jax.random.key(0), 500)
    estimator = estimation.objective_perturbation(zero_sum=True, noise="k_norm")
    params = estimator.params(epsilon=1.0)
    report = estimator.privatize(jax.random.key(1), params, features, labels)
    theta = estimator.fit(jax.random.key(2), params, features, report).theta
    matrix = covariance_of(estimator)(params, features, report, theta).matrix
    np.testing.assert_allclose(matrix @ jnp.ones(3), 0, atol=1e-5)
    assert float(matrix[0, 0]) > 0


def test_intervals_that_are_not_known_are_refused():
    features, labels = draw(jax.random.key(0), 100)
    ask: dict[str, Any] = {"features": features, "labels": labels, "key": jax.random.key(1)}
    with pytest.raises(ValueError, match="intervals must be None for"):
        estimate(estimation.sgd_rr(), **ask, epsilon=1.0, intervals="sandwich")
    with pytest.raises(ValueError, match="intervals must be one of sandwich, got 'bootstrap'"):
        estimate(estimation.debiased_rr(), **ask, epsilon=1.0, intervals="bootstrap")
    with pytest.raises(ValueError, match="confidence must be in"):
        estimate(estimation.debiased_rr(), **ask, epsilon=1.0, intervals="sandwich", confidence=95)


def test_intervals_on_the_radius_and_without_information_are_warned_of():
    features, labels = draw(jax.random.key(0), 500)
    with pytest.warns(RuntimeWarning, match="intervals ignore the radius, but the estimate lies at it"):
        estimate(estimation.mle(), features, labels, key=jax.random.key(1), radius=0.1, intervals="sandwich")
    doubled = jnp.concatenate([features, features[:, :1]], axis=1)
    with pytest.warns(RuntimeWarning, match="intervals are NaN: the features do not determine the estimate"):
        result = estimate(estimation.mle(), doubled, labels, key=jax.random.key(1), intervals="sandwich")
    assert result.stderr is not None
    assert bool(jnp.isnan(result.stderr).all())


def test_intervals_that_take_the_labels_of_a_person_as_independent_are_warned_of():
    fitted = jnp.zeros(3), Covariance(jnp.eye(3), jnp.asarray(True)), math.inf
    with pytest.warns(RuntimeWarning, match="all labels as independent, but a person gave up to 2: if"):
        _warn_intervals(*fitted, np.arange(100) // 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        _warn_intervals(*fitted, np.arange(100))

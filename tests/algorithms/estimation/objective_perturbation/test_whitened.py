"""Whitened noise: coordinates, the noise's covariance, independence of units, the ridge, and predicted errors."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.estimation import (
    LabelNoise,
    confidence_set,
    debiased_rr,
    estimate,
    objective_perturbation,
    predicted_margin_errors,
    predicted_ridge,
    with_confidence,
)
from jaxdp.estimation._objective_perturbation._objective_perturbation import _coordinates, _ridge
from jaxdp.estimation.noisy_statistic import check_release
from jaxdp.estimation.whitening import whiten
from jaxdp.mechanisms import analytic_gaussian

DTYPE = jax.dtypes.canonicalize_dtype(float)
X64 = bool(jax.config.read("jax_enable_x64"))
TOLERANCE = 1e-9 if X64 else 1e-4
BUDGET: dict[str, Any] = {"epsilon": 1.0, "delta": 1e-6}
WHITENED = objective_perturbation(geometry="whitened")


def uneven(num=300, dim=4, seed=0):
    """Makes features with unequal sizes of columns, correlated."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=(num, dim)) @ rng.normal(size=(dim, dim)) * 10.0 ** np.arange(dim)[::-1]


def labels_of(features, seed=1):
    return (np.random.default_rng(seed).random(len(features)) < 0.5).astype(np.int32)


@pytest.mark.precision
@pytest.mark.parametrize("zero_sum", [False, True])
def test_whitened_features_have_the_identity_on_the_range_as_second_moment(zero_sum):
    features = uneven()
    features = np.hstack([features, features[:, :1] + features[:, 1:2], np.zeros((300, 1))])  # a range of 4 of 6
    features = features - features.mean(1, keepdims=True) if zero_sum else features
    white = whiten(jnp.asarray(features, DTYPE), zero_sum=zero_sum)
    rank = np.linalg.matrix_rank(features, tol=1e-6)
    moment = np.asarray(white.features, float).T @ np.asarray(white.features, float) / 300
    expected = np.diag(np.r_[np.zeros(6 - rank), np.ones(rank)])
    np.testing.assert_allclose(moment, expected, atol=TOLERANCE)
    np.testing.assert_allclose(
        np.asarray(white.features, float) @ np.asarray(white.back, float), features, atol=TOLERANCE * 1e4
    )
    with pytest.raises(AssertionError):  # planted: a range of full rank
        np.testing.assert_allclose(moment, np.eye(6), atol=TOLERANCE)


def check_covariance(reports, statistic, covariance):
    """Checks all second moments of the noise within 5 standard errors, in units of the columns' spread."""
    spread = np.sqrt(np.diag(covariance))
    noise = (np.asarray(reports, float) - statistic) / spread
    expected = covariance / np.outer(spread, spread)
    error = np.sqrt((expected**2 + 1) / len(noise))
    assert (np.abs(noise.T @ noise / len(noise) - expected) < 5 * error).all()


@pytest.mark.parametrize("weights", ["none", "cut"])
def test_noise_has_the_shape_of_the_second_moment_and_the_size_of_the_largest_leverage(weights):
    features = uneven()
    labels, moment = labels_of(features), features.T @ features / len(features)
    leverages = np.einsum("ni,ij,nj->n", features, np.linalg.inv(moment), features)
    estimator, values = objective_perturbation(geometry="whitened", weights=weights), {}
    reach, shares = math.sqrt(leverages.max()), np.ones(len(features))
    if weights == "cut":
        reach, values = 1.5, {"cut": 1.5}
        shares = np.minimum(1, 1.5 / np.sqrt(leverages))
    params = estimator.params(**BUDGET, **values)
    privatize = jax.jit(jax.vmap(estimator.privatize, (0, None, None, None)))
    reports = privatize(jax.random.split(jax.random.key(3), 4000), params, jnp.asarray(features, DTYPE), labels)
    reports = reports.report if weights == "cut" else reports
    stddev = analytic_gaussian(1.0, 1e-6) * reach
    check_covariance(reports, (shares * labels) @ features, stddev**2 * moment)
    with pytest.raises(AssertionError):  # planted: half of the leverage
        check_covariance(reports, (shares * labels) @ features, stddev**2 / 2 * moment)
    with pytest.raises(AssertionError):  # planted: isotropic noise of the same trace
        check_covariance(reports, (shares * labels) @ features, stddev**2 * np.trace(moment) / 4 * np.eye(4))


@pytest.mark.parametrize("weights", ["none", "cut"])
def test_margins_do_not_depend_on_units_or_on_repeated_columns(weights):
    features = np.random.default_rng(0).normal(size=(500, 3))
    labels = labels_of(features)
    estimator = objective_perturbation(geometry="whitened", weights=weights)

    def margins(columns):
        values: dict[str, Any] = {**BUDGET, "margin_stddev": math.inf, "tolerance": 1e-6}
        return columns @ np.asarray(estimate(estimator, columns, labels, key=jax.random.key(4), **values).theta, float)

    expected = margins(features)
    np.testing.assert_allclose(margins(features * [100.0, 1.0, 0.01]), expected, atol=5e-3)
    repeated = margins(np.hstack([features, features[:, :1]]))
    assert np.isfinite(repeated).all()
    assert np.std(repeated) < 3 * np.std(expected)


def test_the_ridge_is_chosen_from_public_values_alone():
    features = uneven()
    params = WHITENED.params(**BUDGET)

    def ridge(estimator, columns, **values):
        geometry = "whitened" if estimator is WHITENED else "isotropic"
        release, point = check_release("analytic", "none", "gaussian", geometry=geometry), estimator.params(**values)
        coordinates = _coordinates(release, False, jnp.asarray(columns, DTYPE))
        unit = jnp.max(point.lengths(coordinates.features))
        return float(_ridge(release, point, coordinates, unit, None))

    assert params.margin_stddev == 1
    chosen = ridge(WHITENED, features, **BUDGET)
    assert 0 < ridge(WHITENED, features, **{**BUDGET, "epsilon": 8.0}) < chosen
    assert (
        ridge(WHITENED, features, **BUDGET, margin_stddev=4.0)
        < chosen
        < ridge(WHITENED, features, **BUDGET, margin_stddev=0.3)
    )
    assert ridge(WHITENED, features, **BUDGET, margin_stddev=math.inf) == 0
    assert ridge(WHITENED, features, **BUDGET, regularization=7.0) == 7
    assert ridge(objective_perturbation(), features, **BUDGET) == 0
    clear = ridge(WHITENED, features, **{**BUDGET, "epsilon": math.inf})
    assert 0 < clear < chosen
    with pytest.raises(TypeError, match="margin_stddev"):
        objective_perturbation().params(**BUDGET, margin_stddev=1.0)
    with pytest.raises(ValueError, match="margin_stddev must be > 0, got 0"):
        WHITENED.params(**BUDGET, margin_stddev=0.0)


@pytest.mark.parametrize(("name", "epsilon"), [("gaussian", 0.4), ("k_norm", 0.4), ("randomized_response", 1.0)])
def test_margin_errors_are_as_predicted(name, epsilon):
    """Compares with 200 private estimates of as many truths whose margins have the guessed spread."""
    num, dim, repeats = 3000, 4, 200
    features = np.random.default_rng(0).normal(size=(num, dim)) * [2.0, 1.0, 1.0, 0.5]
    estimator = (
        debiased_rr() if name == "randomized_response" else objective_perturbation(geometry="whitened", noise=name)
    )
    values = {"epsilon": epsilon} | ({"delta": 1e-6} if name == "gaussian" else {})
    moment = features.T @ features / num
    rng = np.random.default_rng(1)
    truths = rng.normal(size=(repeats, dim)) / math.sqrt(np.trace(moment))
    chances = 1 / (1 + np.exp(-truths @ features.T))
    labels = (rng.random((repeats, num)) < chances).astype(np.int32)
    params, columns = estimator.params(**values), jnp.asarray(features, DTYPE)

    def fit(key, labels):
        return estimator.fit(key, params, columns, estimator.privatize(key, params, columns, labels)).theta

    thetas = np.asarray(jax.jit(jax.vmap(fit))(jax.random.split(jax.random.key(2), repeats), labels), float)
    squares = ((thetas - truths) @ np.linalg.cholesky(moment)) ** 2
    error, spread = squares.sum(1).mean(), squares.sum(1).std() / math.sqrt(repeats)
    predicted = predicted_margin_errors(features, epsilon=epsilon, delta=1e-6)
    assert abs(error - predicted[name] ** 2) < 5 * spread + 0.1 * error  # the prediction is of first order
    clear = predicted_margin_errors(features, epsilon=math.inf, delta=1e-6)  # planted: the labels' own error alone
    assert abs(error - clear[name] ** 2) > 5 * spread + 0.1 * error


def test_whitened_noise_is_better_than_isotropic_noise_for_unequal_spectra():
    features = np.random.default_rng(0).normal(size=(2000, 32)) * np.arange(1, 33) ** -1.5
    errors = predicted_margin_errors(features, epsilon=1.0, delta=1e-6)
    assert errors["gaussian"] < errors["isotropic"] < errors["randomized_response"]
    wide = predicted_margin_errors(np.random.default_rng(0).normal(size=(2000, 400)), epsilon=1.0, delta=1e-6)
    assert wide["gaussian"] < wide["k_norm"]  # many dimensions


def test_intervals_of_whitened_noise_are_wider_where_noise_is():
    features = np.random.default_rng(0).normal(size=(2000, 2)) * [4.0, 0.5]
    result = estimate(
        WHITENED,
        features,
        labels_of(features),
        key=jax.random.key(1),
        intervals="sandwich",
        **BUDGET,
        margin_stddev=99.0,
    )
    curvature, stddev = 0.25 * 2000, analytic_gaussian(1.0, 1e-6)
    leverages = np.sum(features**2 / (features**2).mean(0), axis=1)
    expected = np.sqrt((curvature + stddev**2 * leverages.max()) / curvature**2) / np.sqrt((features**2).mean(0))
    assert result.stderr is not None
    np.testing.assert_allclose(result.stderr, expected, rtol=0.1)


def test_what_whitened_noise_does_not_support_is_refused():
    with pytest.raises(ValueError, match="constants must not be 'paper' with geometry='whitened'"):
        objective_perturbation(geometry="whitened", constants="paper")
    with pytest.raises(ValueError, match="geometry must be one of isotropic, whitened"):
        objective_perturbation(geometry="round")
    features = uneven()
    with pytest.raises(ValueError, match=r"estimator must have Estimator\.noise"):
        with_confidence(WHITENED)
    one = jnp.ones((), DTYPE)
    noise = LabelNoise(one, one, 0 * one, back=jnp.eye(4, dtype=DTYPE))
    with pytest.raises(ValueError, match="noise must be isotropic for a confidence set"):
        confidence_set(
            jnp.zeros(4, DTYPE),
            jnp.asarray(features, DTYPE),
            noise,
            ridge=one,
            radius=one,
            failure_prob=one,
            curvature=one,
        )
    with pytest.raises(ValueError, match=r"features must have shape \[num_samples, dim\]"):
        predicted_margin_errors(np.ones(3), **BUDGET)
    with pytest.raises(ValueError, match="features must not all be 0, got zeros only"):
        predicted_margin_errors(np.zeros((3, 2)), **BUDGET)
    with pytest.raises(ValueError, match="margin_stddev must be finite, got inf"):
        predicted_margin_errors(features, **BUDGET, margin_stddev=math.inf)
    with pytest.raises(ValueError, match="sensitivity must be finite, got inf"):
        predicted_ridge(features, **BUDGET, sensitivity=math.inf)
    with pytest.raises(ValueError, match="sensitivity must be small enough for a finite variance of noise at epsilon"):
        predicted_ridge(features, **BUDGET, sensitivity=1e200)
    with pytest.raises(ValueError, match="features must not all be 0, got zeros only"):
        predicted_ridge(np.zeros((3, 2)), **BUDGET, sensitivity=1.0)
    for predict in (predicted_margin_errors, predicted_ridge):
        with pytest.raises(ValueError, match=r"margin_stddev must be <= 1e\+30, got 1e\+200"):
            predict(features, **BUDGET, margin_stddev=1e200)
        for size in (1e200, 1e-200):
            with pytest.raises(ValueError, match="features must have a largest absolute entry in"):
                predict(np.full((3, 2), size), **BUDGET)


def test_predictions_at_a_tiny_epsilon():
    features = np.random.default_rng(0).normal(size=(50, 3)) * [1, 1, 0]
    errors = predicted_margin_errors(features, epsilon=1e-200, delta=1e-6, persons=np.arange(50) // 2)
    assert errors["randomized_response"] == errors["k_norm"] == math.inf
    assert 0 < errors["gaussian"] < math.inf  # delta alone bounds the noise
    assert 0 < predicted_ridge(features, epsilon=1e-200, delta=1e-6) < math.inf

"""Directions that features leave undetermined: the minimiser of least norm, and `converged` is false far from it.

References are Newton's method in float64 on an orthonormal basis of the rows, where the minimiser is unique.
"""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, log_softmax

from jaxdp.estimation import debiased_rr, estimate, mle, objective_perturbation, plackett_luce_mle
from jaxdp.estimation.doubts import warn_rounded_features
from jaxdp.estimation.label_params import TOLERANCE
from jaxdp.estimation.solver import DECREMENT_RATIO
from jaxdp.mechanisms import debias_labels

X64 = bool(jax.config.read("jax_enable_x64"))
ATOL = 1e-4  # tolerance over the least curvature


def row_space(features):
    _, sizes, rows = np.linalg.svd(features.reshape(-1, features.shape[-1]), full_matrices=False)
    return rows[sizes > 1e-9 * sizes[0]].T


def least_norm(features, targets):
    """Returns the minimiser of least norm of the mean logistic loss."""
    basis = row_space(features)
    inside, theta = features @ basis, np.zeros(basis.shape[1])
    for _ in range(40):
        win = expit(inside @ theta)
        theta -= np.linalg.solve((inside * (win * (1 - win))[:, None]).T @ inside, inside.T @ (win - targets))
    return basis @ theta


def dependent_columns(num_samples=200):
    generator = np.random.default_rng(0)
    features = generator.normal(size=(num_samples, 3))
    features[:, 2] = features[:, 0] + features[:, 1]
    return features, (generator.uniform(size=num_samples) < expit(features @ [1.0, 0.5, 0.0])).astype(int)


def items(num_items=4, num_samples=200):
    generator = np.random.default_rng(1)
    first = generator.integers(0, num_items, num_samples)
    second = (first + generator.integers(1, num_items, num_samples)) % num_items
    features = np.eye(num_items)[first] - np.eye(num_items)[second]
    return features, (generator.uniform(size=num_samples) < expit(features @ np.arange(num_items) / 2)).astype(int)


@pytest.mark.parametrize("data", [dependent_columns, items])
@pytest.mark.parametrize("radius", [np.inf, 50.0])
def test_theta_has_the_least_norm_in_every_order_of_rows(data, radius):
    features, labels = data()
    expected = least_norm(features, labels)
    for seed in range(3):
        order = np.random.default_rng(seed).permutation(len(labels))
        found = estimate(mle(), features[order], labels[order], key=jax.random.key(0), radius=radius)
        np.testing.assert_allclose(found.theta, expected, rtol=0, atol=ATOL)
        assert found.converged


def test_randomized_labels_of_dependent_columns():
    features, labels = dependent_columns()
    estimator = debiased_rr()
    report = estimator.privatize(
        jax.random.key(0), estimator.params(epsilon=3.0), jnp.asarray(features), jnp.asarray(labels)
    )
    found = estimator.fit(jax.random.key(0), estimator.params(epsilon=3.0), jnp.asarray(features), report)
    expected = least_norm(features, np.asarray(debias_labels(report, 3.0), float))
    np.testing.assert_allclose(found.theta, expected, rtol=0, atol=ATOL)


def test_choices_among_actions_without_a_common_direction():
    generator = np.random.default_rng(2)
    features = generator.normal(size=(150, 3, 3))
    features[..., 2] = features[..., 0] - features[..., 1]
    scores = features @ [0.8, -0.4, 0.0]
    labels = np.argmax(scores + generator.gumbel(size=scores.shape), axis=1)
    theta = np.asarray(estimate(plackett_luce_mle(), features, labels, key=jax.random.key(0)).theta, float)
    basis = row_space(features)
    np.testing.assert_allclose(theta, basis @ (basis.T @ theta), rtol=0, atol=ATOL)
    chances = np.exp(log_softmax(features @ theta, axis=1))
    gradient = np.einsum("nk,nkd->d", chances - np.eye(3)[labels], features) / len(labels)
    np.testing.assert_allclose(gradient, 0, rtol=0, atol=2 * TOLERANCE)


def test_more_columns_than_samples():
    generator = np.random.default_rng(3)
    features, labels = generator.normal(size=(8, 20)), generator.integers(0, 2, 8)
    theta = np.asarray(estimate(mle(), features, labels, key=jax.random.key(0), radius=2.0).theta, float)
    basis = row_space(features)
    np.testing.assert_allclose(theta, basis @ (basis.T @ theta), rtol=0, atol=1e-5)


def test_a_penalty_decides_where_features_do_not():
    """Checks that noise along a direction without features is divided by the penalty, of any size."""
    features = np.repeat([[1.0, 0.0], [-1.0, 0.0]], 500, axis=0)
    estimator = objective_perturbation(noise="k_norm")
    params = estimator.params(epsilon=1.0, regularization=0.5)
    report = jnp.asarray([0.0, 1.25])
    theta = estimator.fit(jax.random.key(0), params, jnp.asarray(features, report.dtype), report).theta
    np.testing.assert_allclose(theta, [0.0, 2.5], rtol=1e-3, atol=1e-6)


NEAR = r"columns of features are nearly dependent \(with columns of norm 1, the smallest singular value is "


@pytest.mark.skipif(X64, reason="64-bit floats fit such columns")
@pytest.mark.parametrize("distance", [1e-6, 3e-5, 1e-3])
def test_nearly_dependent_columns_are_warned_of(distance):
    """Checks a solver that converges up to 1.8 standard errors from the maximum: float32 takes such columns as
    dependent.
    """
    features, labels = dependent_columns()
    features[:, 2] += distance * np.random.default_rng(5).normal(size=len(features))
    with pytest.warns(RuntimeWarning, match=NEAR):
        estimate(mle(), features * [1.0, 1e3, 1e-3], labels, key=jax.random.key(0))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_are_not_used_are_no_dependent_ones(dtype):
    features, _ = dependent_columns()
    noise, unused = np.random.default_rng(5).normal(size=features.shape), np.zeros((len(features), 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for each in (unused, features, features + 0.01 * noise):
            warn_rounded_features(np.hstack([unused, each, unused]).astype(dtype))
    with pytest.warns(RuntimeWarning, match=NEAR):
        warn_rounded_features(np.hstack([unused, features + 1e-5 * noise]).astype(dtype))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_nothing_is_said_of_columns_that_are_dependent_or_far_from_it(dtype):
    features, labels = dependent_columns()
    apart = features + 0.01 * np.random.default_rng(5).normal(size=features.shape)
    unused = np.column_stack([apart, np.zeros(len(apart))])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for each in (features, apart, unused, items()[0]):
            estimate(mle(), each.astype(dtype), labels, key=jax.random.key(0))
        near = features + 1e-5 * np.random.default_rng(5).normal(size=features.shape)
        budget = {"epsilon": 1.0, "delta": 1e-5, "radius": 5.0, "regularization": 5.0}
        estimate(objective_perturbation(), near.astype(dtype), labels, key=jax.random.key(0), **budget)


def unlike_columns():
    generator = np.random.default_rng(4)
    features = generator.normal(size=(2000, 2)) * [1.0, 1e-5]
    return features, (generator.uniform(size=2000) < expit(features @ [1.0, 1e5])).astype(int)


def test_columns_of_unlike_units():
    """Checks the maximum (0.98, 1.01e5), within a hundredth of a standard error (1.3 standard errors are 0.06 of
    it).
    """
    features, labels = unlike_columns()
    found = estimate(mle(), features, labels, key=jax.random.key(0))
    np.testing.assert_allclose(found.theta, least_norm(features, labels), rtol=3e-4)
    assert found.converged


def decrement(features, labels, theta):
    """Returns the Newton decrement of the mean loss at theta, in float64."""
    win = expit(features @ theta)
    gradient = features.T @ (win - labels) / len(labels)
    hessian = (features * (win * (1 - win))[:, None]).T @ features / len(labels)
    return np.sqrt(gradient @ np.linalg.solve(hessian, gradient))


@pytest.mark.parametrize("radius", [np.inf, 1e7])
@pytest.mark.parametrize("size", [1e-2, 1e-4, 1e-6])
def test_converged_means_within_the_decrement(radius, size):
    """Checks that a wide ball, which leaves columns in one unit and is too hard for float32, is reported."""
    generator = np.random.default_rng(5)
    features = generator.normal(size=(500, 2)) * [1.0, size]
    labels = (generator.uniform(size=500) < expit(features @ [1.0, 1 / size])).astype(int)
    estimator = mle(max_steps=20)
    report = jnp.asarray(labels)
    found = jax.jit(estimator.fit)(jax.random.key(0), estimator.params(radius=radius), jnp.asarray(features), report)
    left = decrement(features, labels, np.asarray(found.theta, float))
    assert bool(found.converged) == (left <= DECREMENT_RATIO * TOLERANCE)
    assert found.converged or not (X64 or np.isinf(radius))


def test_nearly_equal_columns():
    generator = np.random.default_rng(6)
    features = generator.normal(size=(2000, 2))
    features[:, 1] = features[:, 0] + 1e-2 * features[:, 1]
    labels = (generator.uniform(size=2000) < expit(features @ [30.0, -30.0])).astype(int)
    found = estimate(mle(), features, labels, key=jax.random.key(0))
    assert found.converged
    assert decrement(features, labels, np.asarray(found.theta, float)) <= DECREMENT_RATIO * TOLERANCE


def test_derivatives_leave_out_what_features_leave_out():
    """Compares with differences: features change so that the dependent column stays the sum of the others."""
    features, labels = dependent_columns()
    change = np.random.default_rng(7).normal(size=features.shape)
    change[:, 2] = change[:, 0] + change[:, 1]
    estimator = mle()
    params, step = estimator.params(radius=5.0), 1e-3

    def fit(features):
        return estimator.fit(jax.random.key(0), params, features, jnp.asarray(labels)).theta

    _, tangent = jax.jvp(fit, (jnp.asarray(features),), (jnp.asarray(change),))
    ends = [least_norm(features + sign * step * change, labels) for sign in (1, -1)]
    np.testing.assert_allclose(tangent, (ends[0] - ends[1]) / (2 * step), rtol=0, atol=2e-4)

"""SGD on K-ary randomized choices: its gradient against enumeration and in expectation, its steps against a loop."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.special import softmax

from jaxdp.estimation import sgd_krr, sgd_rr, thurstone_rr
from jaxdp.preferences import gaussian_choices, gaussian_comparisons, probit

DTYPE = jax.dtypes.canonicalize_dtype(float)
X64 = bool(jax.config.read("jax_enable_x64"))
DIM, EPSILON = 2, 1.3
START = np.array([0.5, -1.0])


def second_gradient():
    """Builds an optimiser that goes to START at the first sample, and by minus the gradient at the second."""

    def update(updates, state, params=None):
        del params
        return jnp.where(state == 0, jnp.asarray(START, DTYPE), -updates), state + 1

    return optax.GradientTransformation(lambda params: jnp.int32(0), update)


def problem(num_actions):
    """Builds the estimator, its params, and two samples; tests read the second one's gradient."""
    estimator = sgd_krr(average="none", optimizer=second_gradient())
    features = np.random.default_rng(num_actions).normal(size=(2, num_actions, DIM))
    return estimator, estimator.params(epsilon=EPSILON), jnp.asarray(features, DTYPE)


def gradients(num_actions):
    """Returns the gradient for every report, [K, dim]."""
    estimator, params, features = problem(num_actions)
    reports = jnp.stack([jnp.asarray([0, report], jnp.int32) for report in range(num_actions)])
    thetas = jax.vmap(lambda r: estimator.fit(jax.random.key(0), params, features, r).theta)(reports)
    return START - np.asarray(thetas, float)


def log_gradients(num_actions):
    """Returns grad log p_y at START for every y, [K, dim], in NumPy."""
    phi = np.asarray(problem(num_actions)[2][1], float)
    return phi - softmax(phi @ START) @ phi


@pytest.mark.parametrize("num_actions", [2, 3, 5, 10])
def test_the_gradient_by_enumeration(num_actions):
    """Checks the paper's weights for every report, and their mean by eq.

    (12), -(e^eps - 1)/(e^eps + K - 1) grad log p_y.
    """
    found, logs, weight = gradients(num_actions), log_gradients(num_actions), math.exp(EPSILON) + num_actions - 1
    np.testing.assert_allclose(found, logs.sum(0) / weight - logs, atol=1e-12 if X64 else 1e-5)
    for label in range(num_actions):
        distribution = np.where(np.arange(num_actions) == label, math.exp(EPSILON), 1.0) / weight
        expected = -(math.exp(EPSILON) - 1) / weight * logs[label]
        np.testing.assert_allclose(distribution @ found, expected, atol=1e-12 if X64 else 1e-5)


def check_expectation(found, num_actions, label, num_keys=20_000):
    """Checks the mean over drawn reports, within 5 standard errors; `found` is the gradient for every report."""
    estimator, params, features = problem(num_actions)
    labels = jnp.asarray([0, label], jnp.int32)
    keys = jax.random.split(jax.random.key(5), num_keys)
    reports = jax.jit(jax.vmap(lambda key: estimator.privatize(key, params, features, labels)[1]))(keys)
    drawn = found[np.asarray(reports)]
    factor = (math.exp(EPSILON) - 1) / (math.exp(EPSILON) + num_actions - 1)
    expected = -factor * log_gradients(num_actions)[label]
    assert np.all(np.abs(drawn.mean(0) - expected) <= 5 * drawn.std(0) / math.sqrt(num_keys) + 1e-6)


@pytest.mark.parametrize("num_actions", [2, 3, 5, 10])
def test_the_gradient_is_unbiased_up_to_its_factor(num_actions):
    check_expectation(gradients(num_actions), num_actions, label=1)
    if num_actions > 2:  # planted: the weights for K = 2
        logs = log_gradients(num_actions)
        with pytest.raises(AssertionError):
            check_expectation(logs.sum(0) / (math.exp(EPSILON) + 1) - logs, num_actions, label=1)


def test_inverse_time_steps():
    """Checks 1 / (gamma_eps kappa t), gamma_eps = (e^eps - 1)/(e^eps + K - 1) e^{-4 L B} / 2, projected on the ball."""
    bound, coverage, norm = 0.9, 0.8, 0.4
    data = gaussian_choices(jax.random.key(2), num_samples=25, num_actions=3, dim=2, feature_norm=norm)
    estimator = sgd_krr(step_size="inverse_time", average="all")
    values = {"radius": bound, "coverage": coverage, "feature_norm": norm}
    fit = jax.jit(estimator.fit)
    for epsilon in (0.5, np.inf):
        params = estimator.params(epsilon=epsilon, **values)
        reports = estimator.privatize(jax.random.key(3), params, data.features, data.labels)
        found = fit(jax.random.key(4), params, data.features, reports).theta
        inverse = 1 / (math.exp(epsilon) + 2) if np.isfinite(epsilon) else 0.0
        gain = 1 - 3 * inverse
        theta, iterates = np.zeros(2), []
        for t, (phi, report) in enumerate(zip(np.asarray(data.features, float), reports, strict=True), start=1):
            logs = phi - softmax(phi @ theta) @ phi
            gradient = logs.sum(0) * inverse - logs[report]
            theta = theta - gradient / (gain * math.exp(-4 * norm * bound) / 2 * coverage * t)
            theta = theta / max(1, np.linalg.norm(theta) / bound)
            iterates.append(theta)
        np.testing.assert_allclose(found, np.mean(iterates, axis=0), atol=1e-10 if X64 else 1e-4)


def test_two_actions_are_a_comparison():
    """Compares x and 0: the same gradients as SGD-RR, by the same reports."""
    data = gaussian_comparisons(jax.random.key(0), num_samples=40, dim=3)
    pairs, k_wise = sgd_rr(), sgd_krr()
    features = jnp.stack([data.features, jnp.zeros_like(data.features)], axis=1)
    params = pairs.params(epsilon=1.0)
    report = pairs.privatize(jax.random.key(1), params, data.features, data.labels)
    expected = pairs.fit(jax.random.key(2), params, data.features, report).theta
    found = k_wise.fit(jax.random.key(2), k_wise.params(epsilon=1.0), features, 1 - report).theta
    np.testing.assert_allclose(found, expected, atol=1e-12 if X64 else 1e-5)


def test_thurstone_is_the_probit_link():
    data = gaussian_comparisons(jax.random.key(0), num_samples=40, dim=3, link=probit)
    one, other = thurstone_rr(average="all"), sgd_rr(link=probit, average="all")
    params = one.params(epsilon=1.0, radius=2.0)
    report = one.privatize(jax.random.key(1), params, data.features, data.labels)
    found, expected = (e.fit(jax.random.key(2), params, data.features, report).theta for e in (one, other))
    np.testing.assert_array_equal(found, expected)
    assert (
        np.abs(found - sgd_rr(average="all").fit(jax.random.key(2), params, data.features, report).theta).max() > 0.01
    )

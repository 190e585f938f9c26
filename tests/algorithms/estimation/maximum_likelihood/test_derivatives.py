"""Estimates have the derivatives of a minimiser, with respect to the objective's data and the radius."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from jaxdp.estimation import debiased_rr, mle

ESTIMATORS = {
    "inside": (mle(), {}),
    "on the ball": (mle(), {"radius": 0.5}),
    "zero sum": (mle(zero_sum=True), {}),
    "randomized": (debiased_rr(), {"epsilon": 2.0, "radius": 1.0}),
}


@pytest.fixture(scope="module")
def data():
    generator = np.random.default_rng(0)
    features = generator.normal(size=(200, 3)).astype(np.float32)
    labels = generator.uniform(size=200) < expit(features @ [0.8, -0.5, 0.3])
    change = generator.normal(size=(200, 3)).astype(np.float32)
    return jnp.asarray(features), jnp.asarray(labels, jnp.int32), jnp.asarray(change)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_derivatives_are_those_of_differences(data, name):
    (estimator, values), (features, labels, change) = ESTIMATORS[name], data
    params = estimator.params(**values)
    report = estimator.privatize(jax.random.key(0), params, features, labels)

    @jax.jit
    def theta(step):
        return estimator.fit(jax.random.key(1), params, features + step * change, report).theta

    step, zero = jnp.float32(1e-2), jnp.float32(0)
    differences = (theta(step) - theta(-step)) / (2 * step)
    _, tangent = jax.jvp(theta, (zero,), (jnp.ones_like(zero),))
    np.testing.assert_allclose(tangent, differences, atol=2e-3)
    np.testing.assert_allclose(jax.grad(lambda at: theta(at)[0])(zero), tangent[0], rtol=1e-4)


def test_on_the_ball_the_estimate_grows_with_the_radius(data):
    estimator, (features, labels, _) = mle(), data
    params = estimator.params(radius=0.5)

    def length(radius):
        at = dataclasses.replace(params, radius=radius)
        return jnp.linalg.norm(estimator.fit(jax.random.key(1), at, features, labels).theta)

    np.testing.assert_allclose(jax.grad(length)(jnp.float32(0.5)), 1.0, rtol=1e-4)
    np.testing.assert_allclose(jax.grad(length)(jnp.float32(50.0)), 0.0, atol=1e-5)  # the ball does not bind


def test_all_else_is_as_it_was(data):
    estimator, (features, labels, _) = mle(), data
    estimate = estimator.fit(jax.random.key(1), estimator.params(), features, labels)
    assert estimate.steps.dtype == jnp.int32
    assert estimate.converged.dtype == bool
    assert bool(estimate.converged)
    assert 1 < int(estimate.steps) < 20

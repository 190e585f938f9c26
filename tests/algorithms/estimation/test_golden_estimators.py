"""Every registered estimator against its independent NumPy version: the reports' distribution, and fits of one
report.
"""

import dataclasses
import inspect

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.estimation._objective_perturbation_full import perturbed_minimizer
from jaxdp.registry import ESTIMATORS
from tests.algorithms.estimation.golden_estimators import GOLDEN, RATE, clipped, logistic_minimum

OF_BALLOTS = ("ballot_mle", "ballot_objective_perturbation", "ballot_rr")  # in test_ballots.py
X64 = bool(jax.config.read("jax_enable_x64"))
DTYPE = jnp.result_type(float)
COUNT = 1500
BOUNDS = {"inside": 40.0, "on the ball": 0.4}
PRIVATE = [name for name in GOLDEN if "epsilon" in ESTIMATORS[name].values]


# With public weights and K-norm noise: test_public_weights.py beside this file compares their objective with SciPy,
# tests/algorithms/mechanisms/additive/test_k_norm.py the noise with its distribution.
ELSEWHERE = {name for name in ESTIMATORS if name.endswith(("_cut", "_k_norm"))}


def test_every_estimator_has_a_golden_version():
    assert {*GOLDEN, *OF_BALLOTS} == set(ESTIMATORS) - ELSEWHERE
    assert len(ELSEWHERE) == 5


def problem(name):
    """Builds the estimator, a grid point without a radius, and its tiny problem."""
    entry = ESTIMATORS[name]
    estimator, (features, labels) = entry.make(), entry.make_data(jax.random.key(1))
    taken = inspect.signature(estimator.params).parameters
    options = {"learning_rate": RATE, "tolerance": 1e-9 if X64 else 2e-6, "epsilon": 2.0, "delta": 1e-2}
    values = {**entry.values, **{key: value for key, value in options.items() if key in taken}}
    if name == "objective_perturbation_full":
        values["tolerance"] = 1e-7 if X64 else 1e-4
    return estimator, values, features, labels


def plain(tree):
    """Converts to NumPy, with floats as float64."""
    return jax.tree.map(lambda leaf: np.asarray(leaf, float) if leaf.dtype == DTYPE else np.asarray(leaf), tree)


def check_equal(theta, expected):
    np.testing.assert_allclose(theta, expected, rtol=0, atol=1e-7 if X64 else 1e-4)


@pytest.mark.precision
@pytest.mark.parametrize("name", GOLDEN)
def test_fit(name):
    estimator, values, features, labels = problem(name)
    fit = jax.jit(estimator.fit)
    for radius in BOUNDS.values():
        params = estimator.params(**{**values, "radius": radius})
        report = estimator.privatize(jax.random.key(3), params, features, labels)
        theta = fit(jax.random.key(4), params, features, report).theta
        expected = GOLDEN[name].fit({**values, "radius": radius}, plain(features), plain(report))
        check_equal(theta, expected)
        with pytest.raises(AssertionError):  # planted: 2% more of everything
            check_equal(theta, 1.02 * expected)


def reports(estimator, values, features, labels):
    params = estimator.params(**values)
    keys = jax.random.split(jax.random.key(5), COUNT)
    drawn = jax.jit(jax.vmap(estimator.privatize, (0, None, None, None)))(keys, params, features, labels)
    return np.hstack([np.asarray(leaf, float).reshape(COUNT, -1) for leaf in jax.tree.leaves(drawn)])


def check_distribution(left, right):
    """Checks means and mean squared deviations within 5 standard errors of their difference."""
    assert left.shape == right.shape
    centre = right.mean(0)
    for power in (1, 2):
        a, b = (left - centre) ** power, (right - centre) ** power
        error = np.sqrt((a.var(0) + b.var(0)) / COUNT)
        np.testing.assert_array_less(np.abs(a.mean(0) - b.mean(0)), 5 * error + 1e-4 * (1 + np.abs(b.mean(0))))


@pytest.mark.precision
@pytest.mark.parametrize("name", GOLDEN)
def test_reports(name):
    estimator, values, features, labels = problem(name)
    values["radius"] = np.inf
    found = reports(estimator, values, features, labels)
    generator = np.random.default_rng(6)
    expected = GOLDEN[name].reports(generator, values, plain(features), plain(labels), COUNT)
    check_distribution(found, expected)
    if name in PRIVATE:
        wrong = {**values, "epsilon": 2 * values["epsilon"]}  # planted: half the noise, or nearly
        expected = GOLDEN[name].reports(generator, wrong, plain(features), plain(labels), COUNT)
    else:
        expected = 1 - expected
    with pytest.raises(AssertionError):
        check_distribution(found, expected)


@pytest.mark.precision
@pytest.mark.parametrize("bound", BOUNDS)
def test_the_private_minimiser_for_a_given_w(bound):
    """Solves psi(theta) = -w with the same w; some records are longer than 2 L."""
    estimator, values, features, labels = problem("objective_perturbation_full")
    norm, radius, beta = values["feature_norm"], BOUNDS[bound], 3.0
    params = estimator.params(**{**values, "radius": radius, "regularization": beta})
    w = np.array([4.0, -7.0, 1.0])
    scaled = jnp.asarray(w / (2 * norm), DTYPE)
    found = perturbed_minimizer(params, features, labels, scaled, zero_sum=False, max_steps=100)
    x, y = clipped(values, plain(features)), plain(labels)
    assert np.linalg.norm(plain(features), axis=1).max() > 2 * norm
    expected = logistic_minimum({"radius": radius, "regularization": beta}, x, y @ x - w)
    assert (np.linalg.norm(expected) > 0.999 * radius) == (bound == "on the ball")
    assert found.converged
    check_equal(found.theta / (2 * norm), expected)
    assert np.linalg.norm(found.theta - 2 * norm * expected) <= found.certificate + 1e-6  # the bounded quantity


def test_half_the_noise_for_records_is_flagged():
    """Checks the distribution: an audit cannot flag half of Theorem E.1's sigma, which is still private (by
    quadrature).
    """
    estimator, values, features, labels = problem("objective_perturbation_full")
    values["radius"] = np.inf
    params = estimator.params(**values)
    half = estimator._replace(
        params=lambda **_: dataclasses.replace(params, noise_multiplier=params.noise_multiplier / 2)
    )
    expected = GOLDEN["objective_perturbation_full"].reports(
        np.random.default_rng(6), values, plain(features), plain(labels), COUNT
    )
    check_distribution(reports(estimator, values, features, labels), expected)
    with pytest.raises(AssertionError):
        check_distribution(reports(half, values, features, labels), expected)

"""Objective perturbation: its equivalence with noise on the sufficient statistic, and how much noise that is."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize, root_scalar
from scipy.special import expit, ndtr

from jaxdp.estimation import literal_objective_perturbation, objective_perturbation, sgd_objective_perturbation
from jaxdp.estimation.noisy_statistic import exact_statistic
from jaxdp.numerics.fixed_point import in_64_bits

DTYPE = jax.dtypes.canonicalize_dtype(float)
X64 = bool(jax.config.read("jax_enable_x64"))
DELTA, FEATURE_NORM, NUM_KEYS = 1e-3, 4.0, 4000


@pytest.fixture
def data():
    generator = np.random.default_rng(3)
    features = generator.normal(size=(60, 3))
    labels = generator.uniform(size=60) < expit(features @ [1.0, 0.2, -0.8])
    return jnp.asarray(features, DTYPE), jnp.asarray(labels, jnp.int32)


@pytest.mark.parametrize(("beta", "radius"), [(0.0, 1.0), (8.0, np.inf), (8.0, 0.5)])
@pytest.mark.parametrize("epsilon", [1.0, np.inf])
def test_noise_on_the_statistic_is_the_papers_linear_term(data, epsilon, beta, radius):
    """Checks Algorithm 2, with w in the objective and raw labels, at w = S - S~."""
    features, labels = data
    estimator = objective_perturbation()
    params = estimator.params(
        epsilon=epsilon, delta=DELTA, radius=radius, regularization=beta, tolerance=1e-9 if X64 else 3e-6
    )
    report = estimator.privatize(jax.random.key(2), params, features, labels)
    result = jax.jit(estimator.fit)(jax.random.key(1), params, features, report)

    x, y = np.asarray(features, float), np.asarray(labels, float)
    w = y @ x - np.asarray(report, float)

    def objective(theta):
        z = x @ theta
        value = np.sum(np.logaddexp(0, z) - y * z) + beta / 2 * theta @ theta + w @ theta
        return value, (expit(z) - y) @ x + beta * theta + w

    ball = {"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t}
    constraints = [ball] if np.isfinite(radius) else []
    options = {"ftol": 1e-15, "maxiter": 1000}
    expected = minimize(objective, np.zeros(3), jac=True, method="SLSQP", constraints=constraints, options=options).x
    np.testing.assert_allclose(result.theta, expected, rtol=0, atol=1e-6 if X64 else 3e-4)
    assert result.converged


def analytic_multiplier(epsilon):
    """Solves Balle & Wang (2018), Theorem 8."""

    def excess(ratio):
        u, v = epsilon * ratio - 1 / (2 * ratio), epsilon * ratio + 1 / (2 * ratio)
        return ndtr(-u) - math.exp(epsilon) * ndtr(-v) - DELTA

    return root_scalar(excess, bracket=(1e-3, 1e4), xtol=1e-12, rtol=1e-12).root


def paper_multiplier(epsilon):
    return math.sqrt(8 * math.log(2 / DELTA) + 4 * epsilon) / epsilon


def classical_multiplier(epsilon):
    return math.sqrt(2 * math.log(1.25 / DELTA)) / epsilon


def check_noise(privatize, params, features, labels, noise_stddev):
    """Checks mean 0 and this standard deviation, within 5 standard errors of either, over keys and coordinates."""
    keys = jax.random.split(jax.random.key(7), NUM_KEYS)
    reports = jax.jit(jax.vmap(privatize, (0, None, None, None)))(keys, params, features, labels)
    noise = np.asarray(reports, float) - np.asarray(labels, float) @ np.asarray(features, float)
    assert np.all(np.abs(noise.mean(0)) < 5 * noise_stddev / math.sqrt(NUM_KEYS))
    assert abs(noise.std() / noise_stddev - 1) < 5 / math.sqrt(2 * noise.size)
    correlations = np.corrcoef(noise.T) - np.eye(noise.shape[1])
    assert np.all(np.abs(correlations) < 5 / math.sqrt(NUM_KEYS))


def weakened(privatize, scale=0.8):
    """Plants a noise of 0.8 times the standard deviation."""

    def mutant(key, params, features, labels):
        statistic = labels.astype(features.dtype) @ features
        return statistic + scale * (privatize(key, params, features, labels) - statistic)

    return mutant


@pytest.mark.parametrize(
    ("constants", "epsilon", "multiplier", "given_norm"),
    [
        ("analytic", 1.0, analytic_multiplier, {}),
        ("analytic", 0.1, analytic_multiplier, {}),
        ("classical", 0.5, classical_multiplier, {}),
        ("paper", 1.0, paper_multiplier, {"feature_norm": FEATURE_NORM}),
        ("paper", 1.0, paper_multiplier, {}),
    ],
)
@pytest.mark.parametrize("factory", [objective_perturbation, sgd_objective_perturbation])
def test_noise_stddev(data, factory, constants, epsilon, multiplier, given_norm):
    features, labels = data
    estimator = factory(constants=constants)
    params = estimator.params(epsilon=epsilon, delta=DELTA, **given_norm)
    largest = np.linalg.norm(np.asarray(features, float), axis=1).max()
    norm = largest if constants != "paper" else given_norm.get("feature_norm", largest / 2)
    noise_stddev = multiplier(epsilon) * norm
    check_noise(estimator.privatize, params, features, labels, noise_stddev)
    with pytest.raises(AssertionError):
        check_noise(weakened(estimator.privatize), params, features, labels, noise_stddev)


def test_zero_sum_lowers_the_sensitivity(data):
    features, labels = data
    centred = features - features.mean(axis=1, keepdims=True)
    estimator = objective_perturbation(zero_sum=True)
    params = estimator.params(epsilon=1.0, delta=DELTA)
    noise_stddev = analytic_multiplier(1.0) * np.linalg.norm(np.asarray(centred, float), axis=1).max()
    check_noise(estimator.privatize, params, centred, labels, noise_stddev)
    report = estimator.privatize(jax.random.key(0), params, features, labels)
    np.testing.assert_allclose(report, estimator.privatize(jax.random.key(0), params, centred, labels), rtol=1e-4)


def test_the_literal_form_reports_raw_labels_and_w(data):
    features, labels = data
    estimator = literal_objective_perturbation()
    params = estimator.params(epsilon=1.0, delta=DELTA, feature_norm=FEATURE_NORM)
    np.testing.assert_array_equal(estimator.privatize(jax.random.key(0), params, features, labels)[0], labels)

    def noisy_statistic(key, params, features, labels):
        labels, w = estimator.privatize(key, params, features, labels)
        return labels.astype(features.dtype) @ features + w

    check_noise(noisy_statistic, params, features, labels, paper_multiplier(1.0) * FEATURE_NORM)
    assert not estimator.guarantee(epsilon=1.0, delta=DELTA).is_private


@pytest.mark.parametrize("constants", ["analytic", "classical", "paper"])
def test_no_noise_at_infinite_epsilon(data, constants):
    features, labels = data
    estimator = objective_perturbation(constants=constants)
    params = estimator.params(epsilon=np.inf, delta=DELTA)
    assert params.noise_multiplier == 0
    report = estimator.privatize(jax.random.key(0), params, features, labels)
    exact = np.asarray(labels, np.longdouble) @ np.asarray(features, np.longdouble)
    np.testing.assert_array_equal(report, exact.astype(DTYPE))


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_multipliers_are_rounded_up(epsilon):
    """Checks that noise in float32 is never less than the solution."""
    multiplier = float(objective_perturbation().params(epsilon=epsilon, delta=DELTA).noise_multiplier)
    assert analytic_multiplier(epsilon) * (1 - 1e-9) <= multiplier <= analytic_multiplier(epsilon) * (1 + 3e-7)


def moved_by_one_label(statistic):
    """Returns the change of the sum of many terms by one label, less its own term, in terms."""
    generator = np.random.default_rng(4)
    terms = generator.uniform(size=(2**20, 2)).astype(np.float32)
    terms[:, 1] *= -1
    without = terms.copy()
    without[77_777] = 0
    moved = [np.asarray(statistic(each), float) for each in (terms, without)]
    return np.abs((moved[0] - moved[1]) / terms[77_777] - 1).max()


@jax.jit
@in_64_bits
def summed(terms):
    return exact_statistic(terms.astype(jnp.float64), jnp.ones(2, jnp.float64))[0]


def test_one_label_moves_a_large_sum_by_its_own_term():
    assert moved_by_one_label(summed) < 1e-9
    assert moved_by_one_label(lambda terms: jnp.asarray(terms).reshape(-1, 256, 2).sum(1).sum(0)) > 1e-3


@pytest.mark.parametrize("weights", ["none", "cut"])
def test_a_label_that_is_nan_counts_as_zero(data, weights):
    features, labels = data
    estimator = objective_perturbation(weights=weights)
    params, floats = estimator.params(epsilon=1.0, delta=DELTA), labels.astype(features.dtype)
    release = jax.jit(estimator.privatize)
    found, expected = (
        jax.tree.leaves(release(jax.random.key(0), params, features, floats.at[0].set(label))) for label in (jnp.nan, 0)
    )
    for mine, other in zip(found, expected, strict=True):
        np.testing.assert_array_equal(mine, other)
    broken = release(jax.random.key(0), params, features.at[0, 0].set(jnp.nan), floats)
    assert np.isnan(jax.tree.leaves(broken)[0]).any()  # features are public

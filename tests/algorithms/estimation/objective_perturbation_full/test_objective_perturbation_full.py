"""Objective perturbation for whole records: its constants, its privacy by quadrature, and refusals."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit, ndtr

from jaxdp.estimation import estimate, mle, objective_perturbation_full
from jaxdp.estimation._objective_perturbation_full import distance_bound, noise_multiplier, output_multiplier
from jaxdp.estimation.objectives import Evaluation, statistic_objective
from jaxdp.mechanisms import gaussian_delta
from jaxdp.preferences import gaussian_comparisons

DTYPE = jax.dtypes.canonicalize_dtype(float)
X64 = bool(jax.config.read("jax_enable_x64"))
VALUES = {"epsilon": 1.0, "delta": 1e-3, "feature_norm": 0.5}


def data(num_samples=40):
    drawn = gaussian_comparisons(jax.random.key(1), num_samples=num_samples, dim=3, feature_norm=0.5)
    return drawn.features, drawn.labels


@pytest.mark.parametrize("epsilon", [1e-4, 0.1, 1.0, 8.0, 100.0])
@pytest.mark.parametrize("delta", [1e-8, 1e-3, 0.3])
@pytest.mark.parametrize("constants", ["tight", "paper"])
def test_the_budget_adds_up(epsilon, delta, constants):
    """Checks that determinants, exponent and output noise spend at most (epsilon, delta), at sigma and beta of the
    theorem.
    """
    sigma = 4 * math.sqrt(8 * math.log(4 / delta) + 2 * epsilon) / epsilon  # L = 1
    beta = {"tight": 2, "paper": 4}[constants] / epsilon
    assert noise_multiplier(epsilon, delta) == pytest.approx(sigma)
    tail = math.sqrt(2 * math.log(4 / delta))
    exponent = (2 * (4 * sigma * tail) + 16) / (2 * sigma**2)
    assert exponent <= epsilon / 2 * (1 + 1e-12)
    for chosen in (beta, 3 * beta):
        left = epsilon / 2 - math.log1p(1 / chosen)
        assert left > 0
        spent = gaussian_delta(left, output_multiplier(epsilon, delta, chosen))
        assert 4 * ndtr(-tail) + spent <= delta * (1 + 1e-9)


def test_the_noise_on_the_minimiser_is_for_the_regularization_in_force():
    values = {"epsilon": 0.1, "delta": 1e-6, "feature_norm": 0.5}
    default, doubled, least = (
        objective_perturbation_full(constants=constants).params(**values, regularization=beta)
        for constants, beta in (("tight", None), ("paper", 4 * 0.5**2 / 0.1), ("tight", 2 * 0.5**2 / 0.1))
    )
    assert default == doubled
    assert default.output_multiplier < least.output_multiplier / 10
    assert default.regularization == 2 * least.regularization == pytest.approx(4 / 0.1)


def excess_delta(first, second, *, share, epsilon=1.0, delta=1e-3):
    """Returns the hockey-stick divergence of the exact minimiser at epsilon, minus delta.

    Records are (x, y), x in the plane.

    L = 1. It is computed on a grid of theta in the plane, at the least regularization: the density is the density of w
    = -psi(theta) times det psi'.
    """
    sigma = share * noise_multiplier(epsilon, delta)
    beta = 2 / epsilon
    axis = np.linspace(-1, 1, 801) * (7 * sigma + 6) / beta
    theta = np.stack(np.meshgrid(axis, axis, indexing="ij"))

    def density(records):
        psi, slope = beta * theta, [[beta, 0.0], [0.0, beta]]
        for x, y in records:
            share_of_wins = expit(x[0] * theta[0] + x[1] * theta[1])
            psi = psi + (share_of_wins - y) * np.asarray(x, float)[:, None, None]
            bend = share_of_wins * (1 - share_of_wins)
            slope = [[slope[i][j] + bend * x[i] * x[j] for j in range(2)] for i in range(2)]
        determinant = slope[0][0] * slope[1][1] - slope[0][1] * slope[1][0]
        return np.exp(-(psi**2).sum(0) / (2 * sigma**2)) / (2 * np.pi * sigma**2) * determinant

    one, two, cell = density(first), density(second), (axis[1] - axis[0]) ** 2
    assert np.sum(one) * cell == pytest.approx(1, abs=1e-6)
    return np.maximum(one - np.exp(epsilon) * two, 0).sum() * cell / delta


NEIGHBOURS = [
    ([((2, 0), 0)], [((0, 2), 0)]),  # of these the least private
    ([((2, 0), 0)], [((2, 0), 1)]),
    ([((2, 0), 1)], [((0, 0), 1)]),
    ([((2, 0), 0)], [((-2, 0), 0)]),
    ([((2, 0), 0)], [((0.8, 0), 1)]),
    ([((2, 0), 0), ((0, 1), 1)], [((2, 0), 1), ((0, 1), 1)]),
]


@pytest.mark.parametrize("epsilon", [0.3, 1.0, 8.0])
def test_privacy_by_quadrature(epsilon):
    """Checks that the theorem is loose: half its noise would suffice here, an eighth would not."""
    for pair in NEIGHBOURS:
        for first, second in (pair, pair[::-1]):
            assert excess_delta(first, second, share=1, epsilon=epsilon) <= 1
            assert excess_delta(first, second, share=0.5, epsilon=epsilon) <= 1
    assert excess_delta(*NEIGHBOURS[0], share=0.125, epsilon=epsilon) > 1
    if epsilon == 1:
        assert excess_delta(*NEIGHBOURS[0], share=0.18) > 1 > excess_delta(*NEIGHBOURS[1], share=0.18)


def test_regularization_has_a_least_value():
    for constants, factor in (("tight", 2), ("paper", 4)):
        params = objective_perturbation_full(constants=constants).params
        least = factor * 0.5**2 / 1.0
        assert params(**VALUES, regularization=least).regularization == factor
        with pytest.raises(ValueError, match=rf"regularization must be >= {factor} .* = {least:g}, got 0\.4"):
            params(**VALUES, regularization=0.4)
    assert objective_perturbation_full().params(**{**VALUES, "epsilon": np.inf}, regularization=0.0)


def test_a_wrong_feature_norm():
    for value in (np.inf, np.nan, 0.0):
        with pytest.raises(ValueError, match=f"feature_norm.*{value}"):
            objective_perturbation_full().params(**{**VALUES, "feature_norm": value})


def test_fit_does_not_look_at_the_features():
    estimator, (features, labels) = objective_perturbation_full(max_steps=50), data()
    params = estimator.params(**VALUES)
    report = estimator.privatize(jax.random.key(0), params, features, labels)
    result = estimator.fit(jax.random.key(0), params, jnp.full_like(features, jnp.nan), report)
    np.testing.assert_array_equal(result.theta, report.theta)
    assert np.all(np.isfinite(result.theta))
    # the solver's workload is private
    assert (result.certificate, result.steps, result.converged) == (params.tolerance, 50, True)


def test_records_are_made_to_fit():
    """Checks that long records are shrunk, and infinite ones and wrong labels replaced: one by one, without an
    error.
    """
    estimator, (features, labels) = objective_perturbation_full(), data()
    params = estimator.params(**VALUES)
    release = jax.jit(estimator.privatize)
    unit = features[0] / jnp.linalg.norm(features[0])
    tame = features.at[0].set(unit).at[1:3].set(0.0)  # 2 L = 1
    wild = features.at[0].multiply(1e6).at[1, 0].set(jnp.nan).at[2, 1].set(jnp.inf)
    found = release(jax.random.key(0), params, wild, labels.at[3:5].set(jnp.asarray([-7, 9], jnp.int32)))
    expected = release(jax.random.key(0), params, tame, labels.at[3:5].set(jnp.asarray([0, 1], jnp.int32)))
    np.testing.assert_allclose(found.theta, expected.theta, rtol=1e-4)
    with pytest.raises(AssertionError):
        np.testing.assert_allclose(found.theta, release(jax.random.key(0), params, features, labels).theta, rtol=1e-4)
    largest = jnp.finfo(DTYPE).max
    for size in (largest, largest / 4, largest / 16):  # of its largest entry
        wild = tame.at[0].set(unit / jnp.abs(unit).max() * size).at[1, 0].set(jnp.nan)
        expected = release(jax.random.key(0), params, tame, labels)
        np.testing.assert_allclose(release(jax.random.key(0), params, wild, labels).theta, expected.theta, rtol=1e-4)


def test_a_label_that_is_nan_counts_as_zero():
    estimator, (features, labels) = objective_perturbation_full(), data()
    params, floats = estimator.params(**VALUES), labels.astype(features.dtype)
    release = jax.jit(estimator.privatize)
    found, expected = (
        release(jax.random.key(0), params, features, floats.at[0].set(label)) for label in (jnp.nan, 0.0)
    )
    assert found.converged
    np.testing.assert_array_equal(found.theta, expected.theta)


def test_no_number_is_an_error():
    """Checks integers of any size, infinite and missing labels: an error would reveal one record."""
    features, labels = [[0.5, 0.0], [0.0, 0.5], [0.3, -0.3], [0.1, 0.0]], [0, 1, 1, 0]
    values = {**VALUES, "key": jax.random.key(0)}
    expected = estimate(objective_perturbation_full(), features, labels, **values).theta
    for wild in ([0, 2**40, 1, 0], [0, 2**64, 1, 0], [-(2**64), 10**400, 1, 0], [0.0, np.inf, 1.0, np.nan]):
        np.testing.assert_array_equal(estimate(objective_perturbation_full(), features, wild, **values).theta, expected)
    booleans = [False, True, True, False]
    np.testing.assert_array_equal(estimate(objective_perturbation_full(), features, booleans, **values).theta, expected)
    without = estimate(objective_perturbation_full(), [[0.0, 0.0], *features[1:]], labels, **values).theta
    found = estimate(objective_perturbation_full(), [[10**400, 0], *features[1:]], labels, **values).theta
    np.testing.assert_array_equal(found, without)


def test_nothing_is_released_unless_the_solver_converged():
    features, labels = data()
    estimator = objective_perturbation_full(max_steps=1)
    params = estimator.params(**VALUES)
    result = estimator.fit(
        jax.random.key(0), params, features, estimator.privatize(jax.random.key(0), params, features, labels)
    )
    assert np.all(np.isnan(result.theta))
    assert not result.converged
    assert np.isinf(result.certificate)
    with pytest.raises(RuntimeError, match=r"nothing was released: .* tolerance"):
        estimate(estimator, features, labels, key=jax.random.key(0), **VALUES)


@pytest.mark.parametrize("zero_sum", [False, True])
def test_it_always_converges_at_the_default_tolerance(zero_sum):
    estimator = objective_perturbation_full(zero_sum=zero_sum)
    features, labels = data(200)
    for epsilon, radius in [(0.1, np.inf), (1.0, 1.0), (20.0, 1.0)]:
        params = estimator.params(**{**VALUES, "epsilon": epsilon, "radius": radius})
        release = _lanes(zero_sum)(jax.random.split(jax.random.key(0), 100), params, features, labels)
        assert np.all(release.converged)
        assert np.linalg.norm(release.theta, axis=1).max() <= radius * (1 + 1e-5)
        if zero_sum:
            assert np.abs(release.theta.sum(axis=1)).max() <= 1e-5 * (1 + np.abs(release.theta).max())


def test_it_nearly_always_converges_where_features_do_not_span_the_space():
    """Pairs of items: along the ones vector there is nothing but beta, and rounding must not add up."""
    rng = np.random.default_rng(0)
    first = rng.integers(0, 5, 3000)
    second = (first + rng.integers(1, 5, 3000)) % 5
    features = jnp.asarray(np.eye(5)[first] - np.eye(5)[second], DTYPE)
    labels = jnp.asarray(rng.integers(0, 2, 3000), jnp.int32)
    params = objective_perturbation_full().params(epsilon=1.0, delta=1e-6, feature_norm=1.0)
    release = _lanes(False)(jax.random.split(jax.random.key(0), 50), params, features, labels)
    assert np.mean(release.converged) >= 0.9  # of running sums in float32 it was 0.1


_PROGRAMS = {}


def _lanes(zero_sum):
    if zero_sum not in _PROGRAMS:
        estimator = objective_perturbation_full(zero_sum=zero_sum)
        _PROGRAMS[zero_sum] = jax.jit(jax.vmap(estimator.privatize, (0, None, None, None)))
    return _PROGRAMS[zero_sum]


@pytest.mark.parametrize("radius", [0.6, np.inf])
def test_infinite_epsilon_is_maximum_likelihood(radius):
    """Checks that there is no noise and no regularization."""
    features, labels = data()
    values = {"key": jax.random.key(0), "radius": radius, "tolerance": 1e-9 if X64 else 1e-6}
    expected = estimate(mle(), features, labels, **values).theta
    found = estimate(objective_perturbation_full(), features, labels, **{**VALUES, "epsilon": np.inf}, **values).theta
    np.testing.assert_allclose(found, expected, atol=1e-7 if X64 else 1e-3)


@pytest.mark.parametrize("radius", [0.5, np.inf])
def test_the_distance_bound_holds(radius):
    """Checks points at all distances from the minimiser; near it the bound is within a small factor."""
    features, labels = data()
    x, y = np.asarray(features, float), np.asarray(labels, float)
    beta, statistic = 2.0, y @ x - np.array([3.0, -1.0, 2.0])
    objective = statistic_objective(features, jnp.asarray(statistic, DTYPE), jnp.asarray(beta, DTYPE))
    ball = jnp.asarray(radius, DTYPE)
    bound = distance_bound(40, jnp.asarray(beta, DTYPE), ball, private=jnp.asarray(True), zero_sum=False)
    exact = np.zeros(3)
    for _ in range(20_000):  # projected gradient
        exact = exact - 0.05 * ((expit(x @ exact) @ x) - statistic + beta * exact)
        exact = exact / max(1, np.linalg.norm(exact) / radius)
    generator = np.random.default_rng(0)
    points = exact + generator.normal(size=(200, 3)) * np.logspace(-4, 0.5, 200)[:, None]
    points = points / np.maximum(1, np.linalg.norm(points, axis=1, keepdims=True) / radius)
    bounds = jax.vmap(lambda theta: bound(theta, objective(theta)))(jnp.asarray(points, DTYPE))
    distances = np.linalg.norm(points - exact, axis=1)
    assert np.all(distances <= np.asarray(bounds) + 1e-6)
    assert np.isfinite(bounds).sum() > 100
    inner = distances < 1e-2
    if np.isinf(radius):
        assert np.all(np.asarray(bounds)[inner] <= 5 * distances[inner] + 1e-5)


@pytest.mark.parametrize("gap", [0.0, 0.1])
def test_the_distance_bound_at_the_boundary_is_that_of_the_proof(gap):
    """Checks a point where -g has a part nu theta that pushes against the ball, and a rest of length 0.7 along it."""
    num_samples, curvature, beta, radius, nu, rest = 10, 0.3, 2.0, 0.5, 6.0, 0.7
    theta = np.array([radius - gap, 0.0])
    gradient = np.array([-nu * theta[0], rest]) / num_samples  # of the mean
    arrays = [jnp.asarray(each, DTYPE) for each in (0, 0, gradient, curvature * np.eye(2), 0)]
    bound = distance_bound(
        num_samples, jnp.asarray(beta, DTYPE), jnp.asarray(radius, DTYPE), private=jnp.asarray(True), zero_sum=False
    )
    steeper = num_samples * curvature + nu / 2
    moved = gap * math.sqrt(2 * (num_samples * curvature + nu))
    q = rest / steeper + moved * math.exp(gap) / math.sqrt(steeper)
    found = jax.jit(bound)(jnp.asarray(theta, DTYPE), Evaluation(*arrays))
    assert found == pytest.approx(gap - math.log1p(-q * math.exp(gap)), rel=1e-4)


def test_the_noise_is_for_the_norm_in_force():
    """Replaces the feature norm after calibration, as a simulation may: noise and least regularization follow it."""
    estimator, (features, labels) = objective_perturbation_full(), data()
    one = estimator.params(**{**VALUES, "feature_norm": 1.0})
    replaced = dataclasses.replace(one, feature_norm=np.asarray(0.5, DTYPE))
    direct = estimator.params(**VALUES)
    release = jax.jit(estimator.privatize)
    np.testing.assert_array_equal(
        release(jax.random.key(0), replaced, features, labels).theta,
        release(jax.random.key(0), direct, features, labels).theta,
    )


def test_the_claim_says_that_a_failed_solve_is_not_covered():
    made = objective_perturbation_full()
    assert (
        "not covered: whether the solver converged"
        in made.guarantee(epsilon=1.0, delta=1e-3, feature_norm=1.0).argument
    )
    assert "not covered" not in made.guarantee(epsilon=math.inf, delta=1e-3, feature_norm=1.0).argument

"""Weights from public features: the predicted error, the cut, and their effect on estimates and its cost."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logsumexp

from jaxdp.estimation import (
    ballot_objective_perturbation,
    gaussian_rewards,
    mle,
    objective_perturbation,
    objective_perturbation_full,
    plackett_luce_objective_perturbation,
    predicted_errors,
    quieter_noise,
    sgd_objective_perturbation,
)
from jaxdp.estimation.public_weights import effective_cut
from jaxdp.mechanisms import analytic_gaussian
from jaxdp.preferences import pair_features, probit
from jaxdp.simulation import estimation_run, sweep

DTYPE = jax.dtypes.canonicalize_dtype(float)
X64 = bool(jax.config.read("jax_enable_x64"))
DELTA = 1e-3


def features_of(num_samples, dim, seed=0):
    return np.random.default_rng(seed).normal(size=(num_samples, dim)) * np.linspace(1, 3, dim)


def expected_error(features, cut, variance):
    """Computes tr H^-1 (M + V) H^-1 as SPEC has it, one cut at a time."""
    lengths = np.linalg.norm(features, axis=1)
    weights = np.minimum(1, cut / lengths)
    hessian = features.T @ (weights[:, None] * features) / 4
    middle = features.T @ (weights[:, None] ** 2 * features) / 4 + variance * cut**2 * np.eye(features.shape[1])
    inverse = np.linalg.inv(hessian)
    return np.trace(inverse @ middle @ inverse)


def predicted(features, variance):
    lengths = np.linalg.norm(features, axis=1)
    arrays = (jnp.asarray(x, DTYPE) for x in (lengths, features[:, None, :] / 2, variance))
    return [np.asarray(x, float) for x in jax.jit(predicted_errors)(*arrays)]


@pytest.mark.parametrize(("num_samples", "dim"), [(1, 1), (63, 2), (64, 3), (500, 3)])
def test_the_predicted_error(num_samples, dim):
    features = features_of(num_samples, dim)
    cuts, errors = predicted(features, 7.0)
    np.testing.assert_allclose(cuts[-1], np.linalg.norm(features, axis=1).max(), rtol=1e-6)
    assert np.all(np.diff(cuts) >= 0)
    for cut, error in zip(cuts, errors, strict=True):
        assert error == pytest.approx(expected_error(features, cut, 7.0), rel=1e-9 if X64 else 1e-3)


@pytest.mark.parametrize("variance", [0.0, 1.0, 50.0, 1e4])
def test_the_cut_is_nearly_the_best_of_all(variance):
    """Checks that candidates, which are quantiles, lie near enough to any cut."""
    features = features_of(1000, 4)
    best = min(expected_error(features, cut, variance) for cut in np.geomspace(0.05, 12, 400))
    _, errors = predicted(features, variance)
    assert errors.min() <= 1.01 * best
    if variance == 0:
        assert np.argmin(errors) == len(errors) - 1  # nothing is cut where there is no noise


@pytest.mark.parametrize("stretch", [(0, 1e5), (slice(None), 1e4)])
def test_the_cut_where_one_feature_or_one_unit_is_far_larger(stretch):
    """Checks that in float32 the largest feature does not hide all other directions."""
    where, factor = stretch
    features = features_of(1000, 5)
    if isinstance(where, int):
        features[where] *= factor
    else:
        features[:, 0] *= factor
    lengths = np.linalg.norm(features, axis=1)
    grid = np.geomspace(lengths.min(), lengths.max(), 300)
    best = min(expected_error(features, cut, 300.0) for cut in grid)
    cuts, errors = predicted(features, 300.0)
    assert expected_error(features, cuts[np.argmin(errors)], 300.0) <= 1.1 * best


def test_directions_that_nothing_spans_are_left_out():
    flat = features_of(300, 3) @ np.diag([1.0, 1.0, 0.0])
    np.testing.assert_allclose(predicted(flat, 7.0)[1], predicted(flat[:, :2], 7.0)[1], rtol=1e-3)


def test_a_direction_between_the_axes_is_known():
    line = features_of(300, 1)
    diagonal = line * np.sqrt([[0.5, 0.5]])  # where the omitted part could cancel the known part
    np.testing.assert_allclose(predicted(diagonal, 7.0)[1], predicted(line, 7.0)[1], rtol=1e-3)


def test_a_given_cut_is_taken_and_never_beyond_the_longest():
    features = jnp.asarray(features_of(50, 2), DTYPE)
    lengths = jnp.linalg.norm(features, axis=1)

    def cut(given):
        return float(effective_cut(jnp.asarray(given), lengths, features[:, None] / 2, jnp.asarray(9.0, DTYPE), None))

    assert cut(0.5) == 0.5
    assert cut(np.inf) == cut(1e9) == float(lengths.max())
    assert float(lengths.min()) <= cut(0.0) < float(lengths.max())


def weighted_minimum(features, weights, statistic, radius):
    def objective(theta):
        z = features @ theta
        return weights @ np.logaddexp(0, z) - statistic @ theta, (weights * expit(z)) @ features - statistic

    ball = {"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t}
    options = {"ftol": 1e-15, "maxiter": 1000}
    start = np.zeros(features.shape[1])
    return minimize(objective, start, jac=True, method="SLSQP", constraints=[ball], options=options).x


@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
@pytest.mark.parametrize("zero_sum", [False, True])
def test_the_estimate_minimises_the_weighted_loss(noise, zero_sum):
    features, labels = features_of(80, 3), np.arange(80) % 3 == 0
    estimator = objective_perturbation(weights="cut", noise=noise, zero_sum=zero_sum)
    values = {"epsilon": 1.0, "radius": 0.6, "tolerance": 1e-9 if X64 else 3e-6}
    params = estimator.params(**values, **({"delta": DELTA} if noise == "gaussian" else {}))
    data = jnp.asarray(features, DTYPE), jnp.asarray(labels, jnp.int32)
    report = jax.jit(estimator.privatize)(jax.random.key(2), params, *data)
    theta = jax.jit(estimator.fit)(jax.random.key(1), params, data[0], report).theta
    used = features - features.mean(axis=1, keepdims=True) if zero_sum else features
    weights = np.minimum(1, float(report.cut) / np.linalg.norm(used, axis=1))
    assert weights.min() < 1
    statistic = np.asarray(report.report, float)
    if zero_sum:
        statistic = statistic - statistic.mean()
        assert abs(float(theta.sum())) < 1e-5
        if noise == "k_norm":
            assert abs(float(report.report.sum())) < 1e-3  # noise lies in the span of the search
    np.testing.assert_allclose(theta, weighted_minimum(used, weights, statistic, 0.6), atol=1e-6 if X64 else 3e-4)


def test_choices_minimise_the_weighted_loss():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(60, 4, 2)), rng.integers(0, 4, 60)
    estimator = plackett_luce_objective_perturbation(weights="cut", noise="k_norm")
    params = estimator.params(epsilon=3.0, radius=5.0, tolerance=1e-9 if X64 else 3e-6)
    data = jnp.asarray(features, DTYPE), jnp.asarray(labels, jnp.int32)
    report = jax.jit(estimator.privatize)(jax.random.key(2), params, *data)
    theta = jax.jit(estimator.fit)(jax.random.key(1), params, data[0], report).theta
    distances = np.linalg.norm(features[:, :, None] - features[:, None], axis=-1).max(axis=(1, 2))
    weights = np.minimum(1, float(report.cut) / distances)
    relative = features - features.mean(axis=1, keepdims=True)

    def objective(theta):
        return weights @ logsumexp(relative @ theta, axis=1) - np.asarray(report.report, float) @ theta

    found = minimize(objective, np.zeros(2), method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(theta, found.x, atol=2e-5 if X64 else 1e-3)


@pytest.mark.parametrize("link", [None, probit])
def test_weighted_maximum_likelihood(link):
    """Checks that an infinite cut and the cut 0 (of least predicted error) change nothing, and a short one weights."""
    features, labels = jnp.asarray(features_of(200, 2), DTYPE), jnp.asarray(np.arange(200) % 3 == 0, jnp.int32)
    given = {} if link is None else {"link": link}
    estimator, key = mle(weights="cut", **given), jax.random.key(0)
    fit = jax.jit(estimator.fit)
    plain = jax.jit(mle(**given).fit)(key, mle().params(radius=3.0), features, labels).theta
    for cut in (0.0, np.inf):
        theta = fit(key, estimator.params(radius=3.0, cut=cut), features, labels).theta
        np.testing.assert_allclose(theta, plain, atol=1e-5)
    theta = fit(key, estimator.params(radius=3.0, cut=1.0), features, labels).theta
    if link is None:
        used = np.asarray(features, float)
        weights = np.minimum(1, 1 / np.linalg.norm(used, axis=1))
        statistic = (weights * np.asarray(labels)) @ used
        np.testing.assert_allclose(theta, weighted_minimum(used, weights, statistic, 3.0), atol=1e-3)
    assert np.abs(theta - plain).max() > 1e-3


def test_sgd_visits_weighted_samples():
    features, labels = jnp.asarray(features_of(200, 2), DTYPE), jnp.asarray(np.arange(200) % 3 == 0, jnp.int32)
    estimator = sgd_objective_perturbation(weights="cut", noise="k_norm", average="none")
    params = estimator.params(epsilon=1.0, radius=2.0, learning_rate=0.1)
    report = estimator.privatize(jax.random.key(0), params, features, labels)
    found = jax.jit(estimator.fit)(jax.random.key(0), params, features, report).theta
    rows = np.asarray(features, float)
    weights = np.minimum(1, float(report.cut) / np.linalg.norm(rows, axis=1))
    theta = np.zeros(2)
    for weight, row in zip(weights / weights.mean(), rows, strict=True):
        gradient = weight * expit(row @ theta) * row - np.asarray(report.report, float) / weights.mean() / 200
        theta = theta - 0.1 * gradient
        theta = theta / max(1, np.linalg.norm(theta) / 2)
    np.testing.assert_allclose(found, theta, atol=1e-4)


def check_improvement(cut_estimator, least):
    """Checks that the error falls by the measured factor, at epsilon 0.1 from 1,000 comparisons.

    Se of the ratio ~5%.
    """
    compared = {"whole": objective_perturbation(), "cut": cut_estimator}
    run = estimation_run(compared, gaussian_rewards(num_samples=1000, dim=5))
    results = sweep(
        lambda: run,
        axes={"epsilon": [0.1], "delta": [DELTA]},
        num_seeds=100,
        key=jax.random.key(1),
        tile_size=16,
        progress=False,
    )
    error = results.l2_error.squeeze()
    ratio = float(error.sel(estimator="cut").mean() / error.sel(estimator="whole").mean())
    spread = float(error.sel(estimator="cut").std() / error.sel(estimator="whole").mean() / np.sqrt(100))
    assert ratio < least + 3 * spread
    assert bool(results.converged.all())


def test_long_features_that_are_cut_halve_the_error():
    check_improvement(objective_perturbation(weights="cut"), 0.569 / 0.987)
    wrong = objective_perturbation(weights="cut")
    uncut = analytic_gaussian(0.1, DELTA)

    def uncut_noise(key, params, features, labels):  # planted: the sensitivity of features that are not cut
        report = wrong.privatize(key, params, features, labels)
        longest = jnp.max(jnp.linalg.norm(features, axis=1))
        more = jax.random.normal(jax.random.fold_in(key, 1), report.report.shape, report.report.dtype)
        return report._replace(report=report.report + jnp.asarray(uncut, features.dtype) * longest * more)

    with pytest.raises(AssertionError):
        check_improvement(wrong._replace(privatize=uncut_noise), 0.569 / 0.987)


def test_ballots_are_not_changed_by_a_cut():
    features = jnp.asarray(pair_features(3), DTYPE)
    labels = jnp.asarray([[2, 1, 0], [0, 0, 2]], jnp.int8)
    for noise in ("gaussian", "k_norm"):
        values = {"epsilon": 1.0, **({"delta": DELTA} if noise == "gaussian" else {})}
        plain, cut = (ballot_objective_perturbation(weights=weights, noise=noise) for weights in ("none", "cut"))
        reports = [e.privatize(jax.random.key(0), e.params(**values), features, labels) for e in (plain, cut)]
        np.testing.assert_array_equal(*reports)
        assert plain.guarantee(**values).delta == values.get("delta", 0.0)


def test_the_quieter_noise_is_the_one_of_smaller_variance():
    for epsilon in (0.05, 0.5, 1.0, 4.0):
        for dim in (1, 5, 40):
            quieter = (dim + 1) / epsilon**2 < analytic_gaussian(epsilon, DELTA) ** 2
            assert quieter_noise(epsilon=epsilon, delta=DELTA, dim=dim) == ("k_norm" if quieter else "gaussian")
    assert quieter_noise(epsilon=np.inf, delta=DELTA, dim=2) == "gaussian"
    assert quieter_noise(epsilon=0.1, delta=0.0, dim=5) == "k_norm"
    assert quieter_noise(epsilon=1e-200, delta=DELTA, dim=2) == "gaussian"


def test_claims():
    assert objective_perturbation(weights="cut").guarantee(epsilon=0.5, delta=DELTA).delta == DELTA
    pure = objective_perturbation(weights="cut", noise="k_norm").guarantee(epsilon=0.5)
    assert (pure.epsilon, pure.delta) == (0.5, 0.0)
    assert "K-norm" in pure.argument


@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
@pytest.mark.parametrize("weights", ["none", "cut"])
def test_nothing_is_left_of_one_dimension_under_zero_sum(noise, weights):
    estimator = objective_perturbation(noise=noise, weights=weights, zero_sum=True)
    params = estimator.params(epsilon=1.0, radius=3.0, **({"delta": DELTA} if noise == "gaussian" else {}))
    data = jnp.ones((5, 1), DTYPE), jnp.ones(5, jnp.int32)
    report = estimator.privatize(jax.random.key(0), params, *data)
    assert float(estimator.fit(jax.random.key(1), params, data[0], report).theta[0]) == 0.0


def raises(text):
    return pytest.raises(ValueError, match=re.escape(text))


def test_what_is_refused():
    with raises("weights must be 'none', since features are private and weights would reveal them, got 'cut'"):
        objective_perturbation_full(weights="cut")
    for factory in (objective_perturbation, sgd_objective_perturbation, plackett_luce_objective_perturbation, mle):
        with raises("weights must be one of"):
            factory(weights="longest")
    for factory in (objective_perturbation, ballot_objective_perturbation):
        with raises("noise must be one of"):
            factory(noise="laplace")
    with raises("constants must be left at 'analytic' with noise='k_norm', got 'classical'"):
        objective_perturbation(constants="classical", noise="k_norm")
    with raises("constants must not be 'paper' with weights='cut'"):
        objective_perturbation(constants="paper", weights="cut")
    for cut in (-1.0, np.nan):
        with raises(f"cut must be >= 0, got {cut}"):
            objective_perturbation(weights="cut").params(epsilon=1.0, delta=DELTA, cut=cut)
    with pytest.raises(TypeError, match="delta"):
        objective_perturbation(noise="k_norm").params(epsilon=1.0, delta=DELTA)  # pyright: ignore
    with pytest.raises(TypeError, match="cut"):
        objective_perturbation().params(epsilon=1.0, delta=DELTA, cut=1.0)  # pyright: ignore


@pytest.mark.parametrize("noise", ["gaussian", "k_norm"])
@pytest.mark.parametrize("weights", ["none", "cut"])
@pytest.mark.parametrize("estimator", [objective_perturbation, plackett_luce_objective_perturbation])
def test_noise_follows_features_whose_squares_are_out_of_range(estimator, weights, noise):
    """Checks features of 1e-20, with a sensitivity of 0 in float32: their statistic was released as it is."""
    made = estimator(weights=weights, noise=noise)
    shape = (20, 2) if estimator is objective_perturbation else (20, 3, 2)
    features, labels = np.random.default_rng(0).normal(size=shape), jnp.asarray(np.arange(20) % 2)
    values = {"epsilon": 1.0, **({"delta": 1e-3} if noise == "gaussian" else {})}

    def report(exponent):
        cut = {"cut": 2.0**exponent} if weights == "cut" else {}
        scaled = jnp.ldexp(jnp.asarray(features, jnp.result_type(float)), exponent)
        released = made.privatize(jax.random.key(0), made.params(**values, **cut), scaled, labels)
        return np.ldexp(np.asarray(getattr(released, "report", released)), -exponent)

    for exponent in (-80, 80) if jnp.result_type(float) == jnp.float32 else (-600, 600):
        np.testing.assert_allclose(report(exponent), report(0), rtol=1e-5, atol=1e-5)

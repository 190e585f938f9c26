"""Confidence sets: the formula against NumPy, how often they hold the truth, and the offline bandit that uses them."""

import inspect
import re
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxdp import registry
from jaxdp.estimation import (
    ConfidenceSet,
    ConfidentEstimate,
    LabelNoise,
    confidence_set,
    debiased_rr,
    gaussian_rewards,
    greedy_policy,
    mle,
    objective_perturbation,
    objective_perturbation_full,
    offline_bandit,
    suboptimality,
    with_confidence,
)
from jaxdp.estimation.confidence import gamma_quantile
from jaxdp.preferences import probit
from jaxdp.preferences.data import clip_norm
from jaxdp.preferences.models import sample_comparisons
from jaxdp.simulation import estimation_run
from jaxdp.testing import check_estimator

POINTS = {  # estimator, values
    "mle": (mle, {}),
    "debiased_rr": (debiased_rr, {"epsilon": 0.5}),
    "objective_perturbation": (objective_perturbation, {"epsilon": 0.5, "delta": 1e-3}),
    "objective_perturbation_cut": (partial(objective_perturbation, weights="cut"), {"epsilon": 0.5, "delta": 1e-3}),
    "objective_perturbation_cut_k_norm": (
        partial(objective_perturbation, weights="cut", noise="k_norm"),
        {"epsilon": 0.5},
    ),
}


def without_noise():
    return LabelNoise(*(jnp.asarray(x, float) for x in (1, 0, 0)))


def test_the_formula_in_numpy():
    rng = np.random.default_rng(0)
    features, theta = rng.normal(size=(50, 3)), rng.normal(size=3)
    spread, stddev, beta, ridge, radius, failure_prob = 3.0, 4.0, 2.0, 0.1, 0.3, 0.05
    noise = LabelNoise(*(jnp.asarray(x, float) for x in (spread, stddev, beta)))
    values = {"ridge": ridge, "radius": radius, "failure_prob": failure_prob}
    compiled = jax.jit(confidence_set)

    def found(**changes):
        leaves = {name: jnp.asarray(x, float) for name, x in {**values, "curvature": 0.0, **changes}.items()}
        return compiled(jnp.asarray(theta, float), jnp.asarray(features, float), noise, **leaves)

    shape = features.T @ features / 50 + ridge * np.eye(3)
    root = np.linalg.inv(np.linalg.cholesky(shape))
    quadratic = root @ (spread**2 / 4 * features.T @ features + stddev**2 * np.eye(3)) @ root.T / 50**2
    t = -np.log(failure_prob)
    tail = np.trace(quadratic) + 2 * np.sqrt(t * np.trace(quadratic @ quadratic)) + 2 * t * np.linalg.norm(quadratic, 2)
    gradient = np.sqrt(tail) + beta / 50 * radius / np.sqrt(np.linalg.eigvalsh(shape)[0])
    margin = radius * np.linalg.norm(features, axis=1).max()
    gamma = 1 / (2 + np.exp(margin) + np.exp(-margin))
    width = (gradient + np.sqrt(gradient**2 + 16 * gamma**2 * ridge * radius**2)) / (2 * gamma)
    np.testing.assert_allclose(found().width, width, rtol=1e-4)
    assert width <= gradient / gamma + 2 * np.sqrt(ridge) * radius
    np.testing.assert_allclose(found().shape, shape, rtol=1e-4)
    np.testing.assert_array_equal(found().center, jnp.asarray(theta, float))
    assert found(curvature=0.25).width < found().width
    np.testing.assert_allclose(found(curvature=gamma / 2).width, width, rtol=1e-4)  # below the proved size: no effect
    inside = theta + 0.99 * width * np.linalg.inv(np.linalg.cholesky(shape)).T @ np.array([0.6, 0, 0.8])
    assert found().contains(jnp.asarray(inside, float))
    outside = theta + 1.01 / 0.99 * (inside - theta)
    assert not found().contains(jnp.asarray(outside, float))


def test_the_formula_in_numpy_with_weights_and_k_norm_noise():
    rng = np.random.default_rng(0)
    features, weights = rng.normal(size=(50, 3)), rng.uniform(0.2, 1, 50)
    scale, ridge, radius, failure_prob = 4.0, 0.1, 0.3, 0.05
    leaves = {"ridge": ridge, "radius": radius, "failure_prob": failure_prob, "curvature": 0.0}
    leaves = {name: jnp.asarray(value, float) for name, value in leaves.items()}

    def found(weights, scale):
        noise = without_noise()._replace(weights=weights, k_norm_scale=scale)
        return jax.jit(confidence_set)(jnp.zeros(3), jnp.asarray(features, float), noise, **leaves)

    shape = features.T @ (weights[:, None] * features) / 50 + ridge * np.eye(3)
    root = np.linalg.inv(np.linalg.cholesky(shape))
    labels = root @ features.T @ (weights[:, None] ** 2 * features) @ root.T / (4 * 50**2)

    def deviation(quadratic, tail):
        t = -np.log(tail)
        trace, square = np.trace(quadratic), np.trace(quadratic @ quadratic)
        return np.sqrt(trace + 2 * np.sqrt(t * square) + 2 * t * np.linalg.norm(quadratic, 2))

    half = failure_prob / 2
    variance = 2 * scale**2 * scipy.stats.gamma(2.0).isf(half)  # d = 3: Gamma((3 + 1) / 2)
    mixed = deviation(labels + variance / 50**2 * root @ root.T, half)
    smallest = np.linalg.eigvalsh(shape)[0]
    apart = deviation(labels, half) + scale * scipy.stats.gamma(3.0).isf(half) / (50 * np.sqrt(smallest))
    gradient = min(mixed, apart)
    margin = radius * np.linalg.norm(features, axis=1).max()
    gamma = 1 / (2 + np.exp(margin) + np.exp(-margin))
    width = (gradient + np.sqrt(gradient**2 + 16 * gamma**2 * ridge * radius**2)) / (2 * gamma)
    both = found(jnp.asarray(weights, float), jnp.asarray(scale, float))
    np.testing.assert_allclose(both.width, width, rtol=1e-4)
    np.testing.assert_allclose(both.shape, shape, rtol=1e-4)
    for wrong in (found(None, jnp.asarray(scale, float)), found(jnp.asarray(weights, float), None)):
        assert abs(wrong.width / width - 1) > 1e-2  # planted: the weights, or the noise, forgotten


@pytest.mark.parametrize(("shape", "tail"), [(0.5, 0.3), (1.0, 0.05), (3.0, 1e-4), (20.5, 0.5)])
def test_quantiles_of_gamma(shape, tail):
    found = jax.jit(gamma_quantile, static_argnums=0)(shape, jnp.asarray(tail, float))
    np.testing.assert_allclose(found, scipy.stats.gamma(shape).isf(tail), rtol=1e-4)


def test_no_bound_on_the_parameter_needs_no_ridge():
    features = jnp.asarray(np.random.default_rng(0).normal(size=(20, 2)), float)
    values = {"ridge": 0.0, "radius": np.inf, "failure_prob": 0.1, "curvature": 0.2}
    leaves = {name: jnp.asarray(value, float) for name, value in values.items()}
    noise = LabelNoise(*(jnp.asarray(x, float) for x in (1, 0, 0)))
    assert np.isfinite(jax.jit(confidence_set)(jnp.zeros(2), features, noise, **leaves).width)


@pytest.mark.parametrize(
    ("name", "epsilon"),
    [
        ("debiased_rr", 0.5),
        ("objective_perturbation_cut_k_norm", 0.01),
        ("objective_perturbation_cut", 0.02),
        ("objective_perturbation", 0.02),
    ],
)
def test_sets_hold_the_truth(name, epsilon):
    factory, values = POINTS[name]
    estimator = with_confidence(factory())
    params = estimator.params(**{**values, "epsilon": epsilon}, radius=0.5, failure_prob=0.1)
    parameter = jnp.asarray([0.1, -0.1, 0.05])  # far from the bound, relative to the errors
    leaves = {name: jnp.asarray(getattr(params, name)) for name in ("ridge", "radius", "failure_prob", "curvature")}

    def trial(key):
        key_features, key_labels, key_privatize, key_fit = jax.random.split(key, 4)
        features = clip_norm(jax.random.normal(key_features, (5000, 3)), 1.0)
        labels = sample_comparisons(key_labels, jnp.matmul(features, parameter, precision="highest"))
        report = estimator.privatize(key_privatize, params, features, labels)
        fit = estimator.fit(key_fit, params, features, report)
        # A planted mistake, the noise of privacy forgotten, must fail the same test.
        forgetful = confidence_set(fit.theta, features, without_noise(), **leaves)
        return jnp.stack([fit.confidence.contains(parameter), forgetful.contains(parameter)])

    count = 200
    held = jax.jit(jax.vmap(trial))(jax.random.split(jax.random.key(0), count))
    right, wrong = np.asarray(held).mean(axis=0)
    least = 0.9 - 5 * np.sqrt(0.1 * 0.9 / count)
    assert right >= least
    assert wrong < least


@pytest.mark.parametrize("name", POINTS)
def test_contract(name):
    factory, values = POINTS[name]
    estimator, point = with_confidence(factory()), {**values, "radius": 2.0, "ridge": 1e-3}
    features = jnp.asarray(np.random.default_rng(0).normal(size=(60, 3)), float)
    labels = jnp.asarray(np.arange(60) % 3 == 0, jnp.int32)
    check_estimator(estimator, point, features, labels, key=jax.random.key(0), tolerance=1e-3)


@pytest.mark.parametrize("name", POINTS)
def test_report_and_claim_are_the_wrapped_estimators(name):
    factory, values = POINTS[name]
    estimator, plain = with_confidence(factory()), factory()
    assert estimator.guarantee(**values, radius=2.0, ridge=1e-3) == plain.guarantee(**values, radius=2.0)
    data = jnp.ones((4, 2)), jnp.asarray([0, 1, 1, 0], jnp.int32)
    key, params = jax.random.key(1), estimator.params(**values, radius=2.0, ridge=1e-3)
    report = estimator.privatize(key, params, *data)
    jax.tree.map(np.testing.assert_array_equal, report, plain.privatize(key, plain.params(**values, radius=2.0), *data))


def test_what_a_problem_makes_known_reaches_the_wrapped_estimator():
    names = {"plain": debiased_rr(), "set": with_confidence(debiased_rr())}
    run = estimation_run(names, gaussian_rewards(num_samples=50, dim=2, parameter_norm=0.3))
    params = run.params(epsilon=1.0)["estimators"]["set"]
    assert np.isnan(params.radius)
    features = jnp.asarray(np.random.default_rng(0).normal(size=(50, 2)), float)
    told = type(params)(**{**vars(params), "radius": jnp.asarray(0.3, features.dtype)})
    fit = jax.jit(names["set"].fit)(jax.random.key(0), told, features, jnp.ones(50, jnp.int32))
    assert jnp.linalg.norm(fit.theta) <= 0.3 * (1 + 1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ridge": -1.0}, "ridge must be >= 0, got -1.0"),
        ({"ridge": np.nan}, "ridge must be finite, got nan"),
        ({"failure_prob": 0.0}, "failure_prob must be in (0, 1), got 0.0"),
        ({"failure_prob": np.nan}, "failure_prob must be in (0, 1), got nan"),
        ({"curvature": 0.3}, "curvature must be in [0, 0.25], got 0.3"),
        ({"curvature": np.nan}, "curvature must be finite, got nan"),
        ({"radius": np.inf}, "radius must be finite unless ridge is 0 and curvature > 0, got inf"),
        ({"radius": np.inf, "ridge": 0.1, "curvature": 0.1}, "radius must be finite"),
        ({"epsilon": 0.0}, "epsilon must be > 0, got 0.0"),
    ],
)
def test_wrong_values(changes, message):
    estimator = with_confidence(debiased_rr())
    values = {"epsilon": 1.0, "radius": 1.0}
    estimator.params(**values)
    for function in (estimator.params, estimator.guarantee):
        with pytest.raises(ValueError, match=re.escape(message)):
            function(**{**values, **changes})
    with pytest.raises(TypeError, match="tolerence"):
        estimator.params(**values, tolerence=1e-3)
    central, values = with_confidence(objective_perturbation()), {"epsilon": 1.0, "delta": 1e-3}
    for beta in (0.0, 10.0):  # a bound on the parameter is needed where it enters the width
        central.params(**values, radius=1e6, regularization=beta, curvature=0.25)
    central.params(**values, curvature=0.25)
    with pytest.raises(
        ValueError, match=r"radius must be finite unless regularization is 0, got inf with regularization 10"
    ):
        central.params(**values, regularization=10.0, curvature=0.25)


WITHOUT = {
    "probit mle": mle(link=probit),
    "probit debiased_rr": debiased_rr(link=probit),
    "records": objective_perturbation_full(),
    "records, with a noise": objective_perturbation_full()._replace(noise=mle().noise),
    "a set": with_confidence(mle()),
    **{name: entry.make() for name, entry in registry.ESTIMATORS.items() if name not in POINTS},
}


@pytest.mark.parametrize("name", WITHOUT)
def test_an_estimator_without_its_own_noise_and_public_features_is_refused(name):
    with pytest.raises(ValueError, match=r"estimator must have Estimator\.noise and public features, as mle"):
        with_confidence(WITHOUT[name])


def test_the_noise_is_the_estimators_own():
    """Checks that users cannot pass another covariance: one of private features would be released exactly."""
    assert list(inspect.signature(with_confidence).parameters) == ["estimator"]
    features = jnp.asarray(np.random.default_rng(0).normal(size=(30, 3)) + 1, float)
    values = {"epsilon": 0.5, "delta": 1e-3, "radius": 2.0}
    for constants in ("analytic", "classical", "paper"):
        for zero_sum in (False, True):
            estimator = objective_perturbation(constants=constants, zero_sum=zero_sum)
            params = estimator.params(**values, regularization=3.0)
            reports = jax.vmap(estimator.privatize, (0, None, None, None))(
                jax.random.split(jax.random.key(0), 4000), params, features, jnp.ones(30, jnp.int32)
            )
            assert estimator.noise is not None
            noise = estimator.noise(params, features)
            stddev = reports.std(axis=0).mean() / noise.statistic_stddev
            assert abs(stddev - 1) < 5 / np.sqrt(2 * 3 * 4000)
            assert (noise.regularization, noise.spread) == (3.0, 1.0)
    noise = debiased_rr().noise
    assert noise is not None
    spread = noise(debiased_rr().params(epsilon=0.5), features).spread
    assert spread == pytest.approx(1 / np.tanh(0.25))


def test_the_offline_bandit_draws_what_it_says():
    problem = offline_bandit(num_samples=4000, dim=2, num_states=2, num_actions=3)
    params = problem.params(radius=2.0, expertise=1.5)
    sample = jax.jit(problem.sample)(jax.random.key(0), params)
    bandit = sample.truth
    assert jnp.linalg.norm(bandit.parameter) == pytest.approx(2.0)
    assert jnp.linalg.norm(bandit.action_features, axis=-1).max() <= 1 + 1e-6
    rewards = np.asarray(bandit.action_features @ bandit.parameter, float)
    odds = np.exp(1.5 * rewards)
    np.testing.assert_allclose(bandit.reference, odds / odds.sum(1, keepdims=True), rtol=1e-4)
    # Every pair of actions, in every state, as often as the reference policy plays it: 5 standard errors.
    features = np.asarray(sample.features)
    reference = np.asarray(bandit.reference, float)
    pairs = {}
    for state in range(2):
        for first in range(3):
            for second in range(3):
                if first != second:
                    x = np.asarray(bandit.action_features[state, second] - bandit.action_features[state, first])
                    pairs[state, first, second] = np.all(np.abs(features - x) < 1e-5, axis=1)
    for (state, first, second), met in pairs.items():
        chance = reference[state, first] * reference[state, second] / 2
        assert abs(met.mean() - chance) < 5 * np.sqrt(chance / 4000)
        uniform = 1 / 18  # a reference that ignores the rewards fails somewhere
        pairs[state, first, second] = abs(met.mean() - uniform) < 5 * np.sqrt(uniform / 4000)
    assert not all(pairs.values())
    z = features @ np.asarray(bandit.parameter)
    score = np.asarray(sample.labels) - 1 / (1 + np.exp(-z))
    assert abs(score.sum()) < 5 * np.sqrt((score**2).sum())
    assert abs((score * z).sum()) < 5 * np.sqrt((score**2 * z**2).sum())


def test_metrics_of_the_offline_bandit():
    problem = offline_bandit(num_samples=60, dim=2, num_states=2, num_actions=3, max_steps=50)
    params = problem.params(radius=1.0)
    sample = jax.jit(problem.sample)(jax.random.key(1), params)
    bandit = sample.truth
    theta = jnp.asarray([0.3, -0.2])
    confidence = ConfidenceSet(theta, jnp.eye(2), jnp.asarray(0.1))
    estimate = ConfidentEstimate(theta, jnp.asarray(1e-6), jnp.int32(3), jnp.asarray(True), confidence)
    metrics = jax.jit(problem.metrics)
    found = metrics(params, sample, estimate)
    assert set(found) == set(problem.dims)
    assert found["suboptimality"].shape == (len(problem.coords["policy"]),)
    rest = (bandit.action_features, bandit.state_weights, bandit.parameter)
    for policy, place in ((greedy_policy(bandit.action_features, theta), 0), (bandit.reference, 3)):
        np.testing.assert_allclose(found["suboptimality"][place], suboptimality(policy, *rest), atol=1e-6)
    assert found["covered"] == (jnp.linalg.norm(theta - bandit.parameter) <= 0.1)
    nan = theta * jnp.nan
    broken = metrics(params, sample, estimate._replace(theta=nan, confidence=confidence._replace(center=nan)))
    assert np.isnan(broken["suboptimality"][:3]).all()  # a failed fit is no good policy
    assert not broken["covered"]


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: offline_bandit(num_samples=0, dim=2), "num_samples must be an integer >= 1, got 0"),
        (lambda: offline_bandit(num_samples=5, dim=0), "dim must be an integer >= 1, got 0"),
        (lambda: offline_bandit(num_samples=5, dim=2, num_states=0), "num_states must be an integer >= 1, got 0"),
        (lambda: offline_bandit(num_samples=5, dim=2, num_actions=1), "num_actions must be an integer >= 2, got 1"),
        (lambda: offline_bandit(num_samples=5, dim=2, max_steps=0), "max_steps must be an integer >= 1, got 0"),
        (lambda: offline_bandit(num_samples=5, dim=2).params(radius=np.nan), "radius must be finite, got nan"),
        (lambda: offline_bandit(num_samples=5, dim=2).params(radius=0.0), "radius must be > 0, got 0.0"),
        (
            lambda: offline_bandit(num_samples=5, dim=2).params(radius=1.0, expertise=-1.0),
            "expertise must be >= 0, got -1.0",
        ),
    ],
)
def test_wrong_bandits(build, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        build()


@pytest.mark.always
def test_a_set_without_a_shape_has_no_interval():
    none = ConfidenceSet(jnp.zeros(2), jnp.zeros((2, 2)), jnp.ones(()))
    assert np.isnan(none.interval(jnp.asarray([1.0, 1.0]))).all()


def test_an_infinite_ridge_is_refused():
    with pytest.raises(ValueError, match="ridge must be finite, got inf"):
        with_confidence(debiased_rr()).params(epsilon=1.0, radius=1.0, ridge=np.inf)

"""Reward heads against scikit-learn without privacy, and against a NumPy version with it."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import minimize, root_scalar
from scipy.special import expit, ndtr

from jaxdp.estimation import (
    claims_for_persons,
    debiased_rr,
    estimate,
    mle,
    objective_perturbation,
    predicted_margin_errors,
    predicted_ridge,
)
from jaxdp.preferences import limit_per_person

BUDGET = {"epsilon": 1.0, "delta": 1e-6}
SHAPED = objective_perturbation(geometry="whitened")


def pairs(count, dim, *, power, size, seed):
    """Draws features with spectrum j^-power, labels, and margins of standard deviation `size`."""
    random = np.random.default_rng(seed)
    scale = np.arange(1, dim + 1) ** (-power / 2)
    features = (random.normal(size=(count, dim)) * scale).astype(np.float32)
    theta = random.normal(size=dim)
    theta *= size / np.linalg.norm(scale * theta)
    labels = (random.random(count) < expit(features @ theta)).astype(np.float32)
    return features, labels, theta


def fit(estimator, features, labels, seed, **values):
    """Fits in blocks of rows, at any size; nothing is compiled again."""
    large = estimator.large
    return np.asarray(large(jax.random.key(seed), estimator.params(**values), features, jnp.asarray(labels)).theta)


@pytest.mark.optimised
@pytest.mark.parametrize("dim", [64, 256, 1024])
def test_without_privacy_a_head_is_that_of_scikit_learn(dim):
    linear_model = pytest.importorskip("sklearn.linear_model")
    features, labels, _ = pairs(20_000, dim, power=1.0, size=2.0, seed=dim)
    fresh, fresh_labels, _ = pairs(20_000, dim, power=1.0, size=2.0, seed=dim + 1)
    values = {"epsilon": math.inf, "delta": 1e-6, "regularization": 1.0}
    ours = estimate(objective_perturbation(), features, labels, key=jax.random.key(0), **values)
    assert ours.converged
    model = linear_model.LogisticRegression(C=1.0, fit_intercept=False, tol=1e-8, max_iter=10_000)
    theirs = model.fit(features.astype(float), labels).coef_[0]
    margins, expected = fresh @ np.asarray(ours.theta, float), fresh @ theirs
    assert np.quantile(np.abs(margins - expected), 0.99) < 1e-3
    right = [np.mean((each > 0) == fresh_labels) for each in (margins, expected)]
    assert abs(right[0] - right[1]) < 0.002
    other = model.set_params(C=1 / 3).fit(features.astype(float), labels).coef_[0]  # planted: another ridge
    assert np.quantile(np.abs(fresh @ other - margins), 0.99) > 1e-3


def gaussian_stddev(epsilon, delta):
    """Returns the least noise of the Gaussian mechanism at sensitivity 1 (Balle & Wang, 2018)."""

    def excess(stddev):
        low, high = 0.5 / stddev - epsilon * stddev, -0.5 / stddev - epsilon * stddev
        return ndtr(low) - math.exp(epsilon) * ndtr(high) - delta

    return root_scalar(excess, bracket=(0.1, 100.0)).root


def numpy_heads(features, labels, count, ridge, *, noise_share=1.0):
    """Draws private heads by the formulas of docs/proofs/whitened_noise.md."""
    random, wide = np.random.default_rng(7), features.astype(float)
    values, vectors = np.linalg.eigh(wide.T @ wide / len(wide))
    forward, back = vectors / np.sqrt(values), (vectors * np.sqrt(values)).T
    white = wide @ forward
    stddev = noise_share * gaussian_stddev(**BUDGET) * np.linalg.norm(white, axis=1).max()

    def loss(theta, statistic):
        margins = wide @ theta
        value = np.logaddexp(0, margins).sum() - statistic @ theta + ridge / 2 * theta @ theta
        return value, wide.T @ expit(margins) - statistic + ridge * theta

    start = np.zeros(wide.shape[1])
    for _ in range(count):
        statistic = (labels @ white + stddev * random.normal(size=len(values))) @ back
        yield minimize(loss, start, (statistic,), jac=True, method="L-BFGS-B", options={"gtol": 1e-4}).x


def test_private_heads_have_the_distribution_of_a_numpy_version():
    features, labels, _ = pairs(3000, 32, power=1.0, size=1.5, seed=3)
    ridge, count = 5.0, 60
    center = fit(SHAPED, features, labels, 0, epsilon=math.inf, delta=1e-6, regularization=ridge)

    def distances(heads):  # mean squared distances of margins from the head without noise
        return np.mean((features @ (np.stack(heads) - center).T) ** 2, axis=0)

    ours = distances([fit(SHAPED, features, labels, seed, **BUDGET, regularization=ridge) for seed in range(count)])
    theirs = distances(list(numpy_heads(features, labels, count, ridge)))
    wrong = distances(list(numpy_heads(features, labels, count, ridge, noise_share=0.8)))

    def gap(other):
        error = math.hypot(ours.std(), other.std()) / math.sqrt(count)
        return abs(ours.mean() - other.mean()) / error

    assert gap(theirs) < 4
    assert gap(wrong) > 4


def test_whitened_noise_is_not_below_randomized_response_in_many_dimensions():
    """Compares accuracies of four heads for features with spectrum j^-1.5.

    At d = 192, n = 12,000, epsilon = 1: clear .74, local .71, isotropic .58, whitened .73.
    """
    right = []
    for seed in range(3):
        features, labels, theta = pairs(12_000, 192, power=1.5, size=1.6, seed=seed)
        scale = np.arange(1, 193) ** -0.75
        fresh = np.random.default_rng(seed + 100).normal(size=(20_000, 192)) * scale
        chances = expit(fresh @ theta)
        heads = [
            fit(mle(), features, labels, seed),
            fit(debiased_rr(), features, labels, seed, epsilon=1.0),
            fit(objective_perturbation(), features, labels, seed, **BUDGET),
            fit(SHAPED, features, labels, seed, **BUDGET),
        ]
        right.append([np.mean(np.where(fresh @ head > 0, chances, 1 - chances)) for head in heads])
    clear, local, isotropic, whitened = np.mean(right, axis=0)
    assert clear > whitened > local > isotropic + 0.05
    errors = predicted_margin_errors(pairs(12_000, 192, power=1.5, size=1.6, seed=0)[0], **BUDGET)
    assert errors["gaussian"] < errors["randomized_response"]


def test_a_person_with_a_fifth_of_all_labels():
    """Checks claims and accuracies of the page on reward heads, where one person gives 1,000 of 5,000 labels."""
    features, labels, theta = pairs(5000, 16, power=1.0, size=2.0, seed=5)
    persons = np.concatenate([np.arange(4000) // 8, np.full(1000, -1)])
    few = limit_per_person(persons, 8, jax.random.key(2))
    direct = objective_perturbation(geometry="whitened", privacy_unit="person")
    cut = objective_perturbation(geometry="whitened", privacy_unit="person", weights="cut")

    def accuracy(estimator, rows):
        heads = [
            fit(estimator, features[rows], labels[rows], seed, persons=persons[rows], **BUDGET) for seed in range(4)
        ]
        return np.mean([((features @ head) > 0) == (features @ theta > 0) for head in heads])

    group, local = (
        claims_for_persons(SHAPED, persons, **BUDGET),
        claims_for_persons(debiased_rr(), persons, epsilon=1.0),
    )
    assert not group.person.is_private
    assert (local.person.epsilon, local.most_labels) == (1000, 1000)
    assert claims_for_persons(debiased_rr(), persons[few], epsilon=1.0).person.epsilon == 8
    for estimator in (direct, cut):
        claim = claims_for_persons(estimator, persons, **BUDGET).person
        assert (claim.epsilon, claim.delta, claim.unit) == (1.0, 1e-6, "person")
    everything = np.arange(5000)
    assert accuracy(cut, everything) > accuracy(direct, everything) + 0.1
    assert accuracy(direct, few) > accuracy(direct, everything) + 0.1


def test_predictions_refuse_too_few_ids_and_have_no_ridge_without_a_guess():
    features, _, _ = pairs(200, 4, power=1.0, size=2.0, seed=6)
    with pytest.raises(ValueError, match=r"persons must have one id per sample, 200, got shape \(50,\)"):
        predicted_margin_errors(features, **BUDGET, persons=np.arange(50))
    ridges = [predicted_ridge(features, **BUDGET, margin_stddev=size) for size in (1.0, 1e3, math.inf)]
    assert ridges[0] > ridges[1] > ridges[2] == 0

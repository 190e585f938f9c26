"""Confidence sets of rankings, where a common shift of all items is undetermined, and results computed from them."""

import re
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.estimation import (
    ConfidenceSet,
    best_of_policies,
    confidence_set,
    debiased_rr,
    estimate,
    every_policy,
    mle,
    objective_perturbation,
    per_state_pessimistic_policy,
    pessimistic_policy,
    pessimistic_value,
    with_confidence,
)
from jaxdp.estimation.label_noise import search_basis
from jaxdp.preferences import baseball1987
from jaxdp.preferences.ballots import pair_features
from jaxdp.preferences.models import sample_comparisons

DTYPE = jax.dtypes.canonicalize_dtype(float)
POINTS = {
    "mle": (mle, {}),
    "debiased_rr": (debiased_rr, {"epsilon": 1.0}),
    "objective_perturbation": (objective_perturbation, {"epsilon": 1.0, "delta": 1e-3}),
}


def fitted(estimator, features, labels, **values) -> Any:
    return estimate(with_confidence(estimator), features, labels, key=jax.random.key(1), **values)


def by_hand(num_items):
    """Returns orthonormal columns that sum to zero, not by the code's method."""
    basis = np.linalg.svd(np.ones((1, num_items)))[2][1:].T
    np.testing.assert_allclose(basis.sum(0), 0, atol=1e-12)
    return basis


@pytest.mark.parametrize("dim", [2, 3, 7, 100])
def test_the_basis_spans_what_sums_to_zero(dim):
    basis = np.asarray(search_basis(jnp.zeros((1, dim)), zero_sum=True), float)
    np.testing.assert_allclose(basis.T @ basis, np.eye(dim - 1), atol=2e-6)
    np.testing.assert_allclose(basis.sum(0), 0, atol=1e-5)
    assert search_basis(jnp.zeros((1, dim)), zero_sum=False) is None


@pytest.mark.parametrize("ridge", [0.0, 1e-3])
@pytest.mark.parametrize("name", POINTS)
def test_the_set_is_that_of_the_problem_without_the_shift(name, ridge):
    """Checks that abilities in coordinates that sum to zero are a problem without a constraint, with the same set."""
    factory, values = POINTS[name]
    features, labels = baseball1987().design()
    values = {**values, "radius": 8.0, "ridge": ridge, "curvature": 0.25}
    fit = fitted(factory(zero_sum=True), features, labels, **values)
    basis = by_hand(7)
    reduced = jnp.asarray(features @ basis, DTYPE)
    plain = with_confidence(factory())
    params = plain.params(**values)
    noise = factory().noise(params.inner, reduced)
    leaves = {
        leaf: jnp.asarray(getattr(params, leaf), DTYPE) for leaf in ("ridge", "radius", "failure_prob", "curvature")
    }
    expected = confidence_set(jnp.asarray(basis.T @ np.asarray(fit.theta), DTYPE), reduced, noise, **leaves)
    np.testing.assert_allclose(fit.confidence.width, expected.width, rtol=1e-4)
    assert fit.confidence.width < 2
    directions = jnp.asarray(np.random.default_rng(0).normal(size=(5, 7)), DTYPE)
    for found, wanted in zip(
        fit.confidence.interval(directions), expected.interval(jnp.asarray(directions @ basis, DTYPE)), strict=True
    ):
        np.testing.assert_allclose(found, wanted, rtol=1e-3, atol=1e-4)
    for shift in (0.0, 30.0):  # which is undetermined
        assert fit.confidence.contains(fit.theta + shift)
    # As it was: the direction (1, ..., 1) in the noise, and in the shape with an eigenvalue that is 0 up to rounding.
    centred = jnp.asarray(features, DTYPE)
    spectrum = np.linalg.eigvalsh(np.asarray(centred.T @ centred, float))
    assert spectrum[0] < 1e-6 * spectrum[1]
    left = confidence_set(fit.theta, centred, noise._replace(basis=None), **leaves)
    if ridge == 0:
        assert np.isnan(left.width)
    elif name == "objective_perturbation":  # the others have no noise in that direction
        assert left.width > 3 * fit.confidence.width


@pytest.mark.parametrize(("name", "epsilon"), [("objective_perturbation", 0.1), ("debiased_rr", 0.3)])
def test_all_pairwise_intervals_hold_together(name, epsilon):
    factory, values = POINTS[name]
    num_items, count = 4, 300
    abilities = jnp.asarray([0.3, 0.1, -0.1, -0.3], DTYPE)
    pairs = np.tile(pair_features(num_items), (100, 1))
    features, directions = jnp.asarray(pairs, DTYPE), jnp.asarray(pair_features(num_items), DTYPE)
    estimator = with_confidence(factory(zero_sum=True))
    params = estimator.params(**{**values, "epsilon": epsilon}, radius=30.0, curvature=0.22)  # 0.22 < sigmoid'(0.6)
    leaves = {leaf: jnp.asarray(getattr(params, leaf)) for leaf in ("ridge", "radius", "failure_prob", "curvature")}
    forgotten = mle(zero_sum=True).noise
    assert forgotten is not None

    def trial(key):
        key_labels, key_privatize, key_fit = jax.random.split(key, 3)
        labels = sample_comparisons(key_labels, jnp.matmul(features, abilities, precision="highest"))
        report = estimator.privatize(key_privatize, params, features, labels)
        fit = estimator.fit(key_fit, params, features, report)
        sets = (fit.confidence, confidence_set(fit.theta, features, forgotten(params, features), **leaves))

        def held(confidence):
            low, high = confidence.interval(directions)
            truth = directions @ abilities
            return jnp.all((low <= truth) & (truth <= high))

        return jnp.stack([held(confidence) for confidence in sets])

    held = np.asarray(jax.jit(jax.vmap(trial))(jax.random.split(jax.random.key(0), count)))
    right, wrong = held.mean(axis=0)
    least = 0.9 - 5 * np.sqrt(0.1 * 0.9 / count)
    assert right >= least
    assert wrong < least  # privacy's noise forgotten


def test_a_pairwise_interval_is_one_call():
    features, labels = baseball1987().design()
    values = {"epsilon": 1.0, "delta": 1e-3, "radius": 8.0, "curvature": 0.25}
    fit = fitted(objective_perturbation(zero_sum=True), features, labels, **values)
    low, high = fit.confidence.pairwise(4, 0)
    np.testing.assert_allclose((low + high) / 2, fit.theta[4] - fit.theta[0], atol=1e-4)
    shape = by_hand(7).T @ (features.T @ features / len(features)) @ by_hand(7)
    direction = by_hand(7).T @ np.eye(7)[4] - by_hand(7).T @ np.eye(7)[0]
    reach = fit.confidence.width * np.sqrt(direction @ np.linalg.solve(shape, direction))
    np.testing.assert_allclose((high - low) / 2, reach, rtol=1e-3)
    other = fit.confidence.pairwise(0, 4)
    np.testing.assert_allclose(other, (-high, -low), atol=1e-4)
    for first, second, message in (
        (7, 0, "first must be in [0, 7), got 7"),
        (0, -1, "second must be in [0, 7), got -1"),
        (2, 2, "second must differ from first, got 2"),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            fit.confidence.pairwise(first, second)


def test_a_singular_matrix_at_ridge_0_is_refused():
    estimator = objective_perturbation()
    features, labels = np.asarray([[1.0, -1.0], [-1.0, 1.0]]), np.asarray([1, 1])
    values = {"epsilon": 1.0, "delta": 1e-3, "radius": 8.0, "curvature": 0.25}
    with pytest.raises(
        ValueError, match="ridge must be > 0, and larger than rounding errors, if features do not span all"
    ):
        fitted(estimator, features, labels, **values)
    assert np.isfinite(fitted(estimator, features, labels, **values, ridge=1e-3).confidence.width)


def test_a_singular_matrix_that_is_traced_has_no_width():
    features, labels = baseball1987().design()
    apart = np.concatenate([features, np.zeros_like(features[:, :1])], axis=1)  # an item that was never compared
    values = {"epsilon": 1.0, "delta": 1e-3, "radius": 8.0, "curvature": 0.25}
    for zero_sum, wrong in ((False, features), (True, apart)):
        plain = objective_perturbation(zero_sum=zero_sum)
        with pytest.raises(
            ValueError, match="ridge must be > 0, and larger than rounding errors, if features do not span all"
        ):
            fitted(plain, wrong, labels, **values)
        fit = fitted(plain, wrong, labels, **values, ridge=1e-3)
        assert np.isfinite(fit.confidence.width)
        assert np.isfinite(fit.confidence.pairwise(0, 1)).all()
        # Traced, where nothing can be raised, there is no width: the set holds nothing, and no policy looks well.
        estimator = with_confidence(plain)
        params = estimator.params(**values)
        report = estimator.privatize(jax.random.key(2), params, jnp.asarray(wrong, DTYPE), jnp.asarray(labels))
        confidence = jax.jit(estimator.fit)(jax.random.key(3), params, jnp.asarray(wrong, DTYPE), report).confidence
        assert np.isnan(confidence.width)
        assert np.isnan(confidence.interval(jnp.eye(wrong.shape[1])[0])).all()
        assert not confidence.contains(confidence.center)
        actions = jnp.asarray(np.random.default_rng(0).normal(size=(2, 3, wrong.shape[1])), DTYPE)
        assert np.isnan(pessimistic_policy(actions, jnp.full(2, 0.5), confidence).policy).all()
        assert np.isnan(per_state_pessimistic_policy(actions, confidence)).all()
    with pytest.raises(ValueError, match="features must have at least two dimensions under zero_sum"):
        fitted(mle(zero_sum=True), np.ones((3, 1)), np.ones(3), radius=1.0)


def test_policies_are_those_of_the_problem_without_the_shift():
    rng = np.random.default_rng(1)
    num_states, num_actions, dim = 2, 3, 4
    actions = jnp.asarray(rng.normal(size=(num_states, num_actions, dim)), DTYPE)
    weights = jnp.full(num_states, 0.5, DTYPE)
    basis = jnp.asarray(by_hand(dim), DTYPE)
    inner = rng.normal(size=(dim - 1, dim - 1))
    inner = jnp.asarray(inner @ inner.T + np.eye(dim - 1), DTYPE)
    center = jnp.asarray(by_hand(dim) @ rng.normal(size=dim - 1), DTYPE)
    span = search_basis(jnp.zeros((1, dim)), zero_sum=True)  # another basis of the same span
    outer = ConfidenceSet(center, basis @ inner @ basis.T, jnp.asarray(0.7, DTYPE), span)
    plain = ConfidenceSet(basis.T @ center, inner, outer.width)
    reduced = jnp.matmul(actions, basis, precision="highest")
    found, expected = (
        pessimistic_policy(features, weights, confidence, max_steps=3000, tolerance=1e-4)
        for features, confidence in ((actions, outer), (reduced, plain))
    )
    assert max(found.gap, expected.gap) <= 2e-4
    np.testing.assert_allclose(found.value, expected.value, atol=3e-4)
    np.testing.assert_array_equal(
        per_state_pessimistic_policy(actions, outer), per_state_pessimistic_policy(reduced, plain)
    )
    policies = jnp.asarray(every_policy(num_states, num_actions))
    best = best_of_policies(policies, actions, weights, outer)
    np.testing.assert_array_equal(best.policy, best_of_policies(policies, reduced, weights, plain).policy)
    assert found.value >= best.value - 3e-4
    # The value is the least over the set: no member is below it, and the one at the far end reaches it.
    value = pessimistic_value(best.policy, actions, weights, outer)
    mean = np.einsum("s,sa,sad->d", weights, best.policy, actions)
    sphere = rng.normal(size=(4000, dim - 1))
    sphere /= np.linalg.norm(sphere, axis=1, keepdims=True)
    root = np.linalg.inv(np.linalg.cholesky(np.asarray(inner, float)))
    members = np.asarray(center) + float(outer.width) * (sphere @ root) @ by_hand(dim).T
    assert all(outer.contains(jnp.asarray(center + 0.999 * (m - center), DTYPE)) for m in members[:20])
    assert value <= (members @ mean).min() + 1e-5
    assert value >= (members @ mean).min() - 0.05

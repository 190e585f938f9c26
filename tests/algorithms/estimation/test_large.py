"""Fits in blocks of rows against the same estimators with all features at once."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.special import expit

from jaxdp.core import default_float
from jaxdp.estimation import (
    debiased_rr,
    estimate,
    large,
    large_fits,
    large_newton,
    mle,
    objective_perturbation,
    predict_fit_cost,
)
from jaxdp.estimation.large_newton import _Point, _Problem
from jaxdp.estimation.public_weights import predicted_errors

COUNT, DIM = 600, 6
KEY = jax.random.key(1)
BUDGET = {"epsilon": 1.0, "delta": 1e-4}
PERSONS = np.arange(COUNT) // 5


@pytest.fixture(scope="module")
def pairs():
    random = np.random.default_rng(3)
    features = (random.normal(size=(COUNT, DIM)) * np.arange(1, DIM + 1) ** -0.75).astype(np.float16)
    labels = random.random(COUNT) < 1 / (1 + np.exp(-features.astype(float) @ random.normal(size=DIM)))
    labels = labels.astype(np.float32)
    labels[:4] = 0.5
    return features, labels


def both(estimator, pairs, monkeypatch, **values):
    """Fits at once, then in blocks."""
    at_once = estimate(estimator, *pairs, key=KEY, **values)
    monkeypatch.setattr(large, "LARGE_SIZE", 100)
    monkeypatch.setattr(large, "BLOCK_SIZE", 1000)
    return np.asarray(at_once.theta), estimate(estimator, *pairs, key=KEY, **values)


FITS = {
    "mle": (mle(), {}),
    "mle in a ball": (mle(), {"radius": 0.7}),
    "mle cut": (mle(weights="cut"), {"cut": 0.8}),
    "debiased": (debiased_rr(), {"epsilon": 1.0}),
    "debiased in a ball": (debiased_rr(), {"epsilon": 0.5, "radius": 1.0}),
    "debiased of persons": (debiased_rr(privacy_unit="person"), {"epsilon": 9.0, "persons": PERSONS}),
    "isotropic": (objective_perturbation(), BUDGET | {"regularization": 20.0}),
    "isotropic cut": (objective_perturbation(weights="cut"), BUDGET | {"regularization": 20.0, "cut": 0.9}),
    "paper": (objective_perturbation(constants="paper"), BUDGET | {"radius": 2.0, "feature_norm": 9.0}),
    "whitened": (objective_perturbation(geometry="whitened"), BUDGET),
    "whitened cut": (objective_perturbation(geometry="whitened", weights="cut"), BUDGET | {"cut": 2.0}),
    "whitened persons": (
        objective_perturbation(geometry="whitened", weights="cut", privacy_unit="person"),
        BUDGET | {"persons": PERSONS, "cut": 5.0},
    ),
    "no privacy": (objective_perturbation(geometry="whitened"), BUDGET | {"epsilon": np.inf}),
}


@pytest.mark.parametrize("name", FITS)
def test_it_is_the_fit_of_all_features_at_once(pairs, monkeypatch, name):
    estimator, values = FITS[name]
    theta, result = both(estimator, pairs, monkeypatch, **values)
    assert result.converged
    np.testing.assert_allclose(np.asarray(result.theta), theta, atol=3e-4)


def test_too_little_noise_is_another_fit(pairs, monkeypatch):
    monkeypatch.setattr(large_fits, "block_lengths", lambda *args: large.block_lengths(*args) / 1.2)
    theta, result = both(FITS["whitened"][0], pairs, monkeypatch, **BUDGET)
    assert np.abs(np.asarray(result.theta) - theta).max() > 0.01


def test_a_sum_has_the_same_bits_in_any_blocks(pairs):
    features, labels = pairs
    factors, largest = labels / 3, np.abs(features).max(axis=0).astype(float)
    sums = [large.block_statistic(features, factors, largest, block_size=size)[0] for size in (7, 64, 1000, 10**6)]
    for other in sums[1:]:
        np.testing.assert_array_equal(sums[0], other)
    singles = factors.astype(np.float32)
    floats = [
        sum(rows.T.astype(np.float32) @ singles[s] for s, rows in large.blocks(features, size)) for size in (7, 64)
    ]
    assert np.any(floats[0] != floats[1])


@pytest.mark.parametrize("unit", ["label", "person"])
def test_no_neighbour_moves_the_sum_by_more_than_its_length(pairs, unit):
    features, labels = pairs
    persons = PERSONS if unit == "person" else None
    lengths = large.block_lengths(features, persons)
    largest = np.abs(features).max(axis=0).astype(float)
    before, error = large.block_statistic(features, labels.astype(float), largest, 5)
    for person in range(0, 120, 7):
        changed = labels.astype(float)
        rows = np.flatnonzero(person == PERSONS) if persons is not None else np.asarray([5 * person])
        changed[rows] = 1 - np.round(changed[rows])
        after, _ = large.block_statistic(features, changed, largest, 5)
        assert np.linalg.norm(after - before) <= lengths[rows[0]] + error


def test_cuts_have_about_the_errors_of_inverted_hessians(pairs):
    features = pairs[0].astype(np.float32)
    lengths = large.block_lengths(features, None)
    cuts, errors = predicted_errors(
        jnp.asarray(lengths, default_float()), jnp.asarray(features[:, None] / 2, default_float()), jnp.asarray(30.0)
    )
    vectors = np.linalg.eigh(large.Moments.of(features).second)[1]
    own_cuts, own_errors = large.block_predicted_errors(features, lengths, 30.0, vectors)
    np.testing.assert_allclose(own_cuts, cuts, rtol=1e-5)
    np.testing.assert_allclose(own_errors, errors, rtol=0.1)
    wrong = large.block_predicted_errors(features, lengths, 30.0, np.linalg.qr(np.ones((DIM, DIM)) + vectors)[0])[1]
    assert np.abs(wrong / errors - 1).max() > 0.1


def test_mapped_features_are_checked_with_the_usual_messages(pairs, monkeypatch, tmp_path):
    features, labels = pairs
    monkeypatch.setattr(large, "LARGE_SIZE", 100)
    np.save(tmp_path / "x.npy", features)
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert estimate(mle(), mapped, labels, key=KEY).converged
    bad = features.copy()
    bad[500, 2] = np.nan
    with pytest.raises(ValueError, match=r"features must be finite, got nan at index \(500, 2\)"):
        estimate(mle(), bad, labels, key=KEY)
    with pytest.raises(ValueError, match="labels must be in"):
        estimate(mle(), features, np.where(np.arange(COUNT) == 599, 2, labels), key=KEY)
    with pytest.raises(ValueError, match="labels must have shape"):
        estimate(mle(), features, np.append(labels, 1), key=KEY)
    norms = np.linalg.norm(features.astype(float), axis=1)
    long = features.copy()
    long[3] *= 40
    with pytest.raises(ValueError, match="feature 3 has norm"):
        estimate(mle(), long, labels, key=KEY, feature_norm=norms.max())


def test_it_warns_of_fits_that_no_one_should_trust(pairs, monkeypatch):
    features, _ = pairs
    monkeypatch.setattr(large, "LARGE_SIZE", 100)
    with pytest.warns(RuntimeWarning, match=r"do not rely on (the magnitude of )?theta"):
        estimate(mle(), features, (features[:, 0] > 0).astype(int), key=KEY)
    dependent = np.repeat(features, 2, axis=1)
    with pytest.warns(RuntimeWarning, match="did not converge"):  # noise outside of the features' range
        estimate(objective_perturbation(), dependent, pairs[1], key=KEY, **BUDGET)


def test_a_row_far_longer_than_the_others_is_warned_of(pairs, monkeypatch):
    """Checks the warning; theta is 0 here, and `converged`."""
    monkeypatch.setattr(large, "LARGE_SIZE", 100)
    features = pairs[0].astype(np.float32) * np.where(np.arange(COUNT) == 7, 1e12, 1).astype(np.float32)[:, None]
    if jnp.zeros(()).dtype == jnp.float32:
        with pytest.warns(RuntimeWarning, match="the largest row of features has .* Rescale rows to similar norms"):
            estimate(objective_perturbation(weights="cut"), features, pairs[1], key=KEY, **BUDGET)


def test_a_large_tolerance_may_accept_zero_in_the_ball(pairs):
    """Fits noise outside of the features' range, at a radius so small that 0 is accepted with a large multiplier."""
    features = np.where(np.arange(DIM) == 3, 0, pairs[0]).astype(np.float32)
    estimator = objective_perturbation()
    params = estimator.params(**BUDGET, radius=1e-3, tolerance=0.2)
    assert estimator.large is not None
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # a search outside of the ball overflows
        theta = estimator.large(KEY, params, features, jnp.asarray(pairs[1])).theta
    assert np.linalg.norm(theta) <= 1e-3 * (1 + 1e-6)


def test_the_cost_is_known_in_advance(pairs, monkeypatch):
    small, whitened = predict_fit_cost(1000, 100), predict_fit_cost(1000, 100, whitened=True)
    assert small.peak_bytes < whitened.peak_bytes
    assert "of one core and" in str(small)
    with pytest.raises(ValueError, match="dim must be"):
        predict_fit_cost(1000, 0)
    monkeypatch.setattr(large, "LARGE_SIZE", 100)
    monkeypatch.setattr(large, "free_host_bytes", lambda: 10**6)
    with pytest.raises(MemoryError, match="the fit must fit in memory"):
        estimate(mle(), *pairs, key=KEY)


@pytest.mark.parametrize("geometry", [None, "isotropic", "whitened"])
def test_an_offset_is_added_to_margins(pairs, geometry):
    """Moves part of the truth into an offset, which changes theta by this part; planted: the offset is not added."""
    features, labels = np.asarray(pairs[0], np.float64), pairs[1]
    part = np.linspace(-0.5, 0.5, DIM)
    estimator = mle() if geometry is None else objective_perturbation(geometry=geometry)
    values = {} if geometry is None else {"epsilon": 1e6, "delta": 1e-6, "radius": 100.0}
    if geometry == "whitened":
        values |= {"margin_stddev": np.inf}  # a ridge would shrink theta alone
    whole = estimate(estimator, features, labels, key=KEY, **values).theta
    corrected = estimate(estimator, features, labels, key=KEY, offset=features @ part, **values).theta
    np.testing.assert_allclose(corrected + part, whole, atol=2e-3)
    assert np.abs(np.asarray(corrected - whole)).max() > 0.4


def test_an_offset_does_not_move_the_ball(pairs):
    features, labels = pairs
    bounded = estimate(mle(), features, labels, key=KEY, radius=0.1, offset=np.ones(COUNT))
    assert bounded.converged
    assert np.linalg.norm(bounded.theta) == pytest.approx(0.1, rel=1e-5)
    theta = np.asarray(bounded.theta, float)
    for offset, is_least in [(1.0, True), (0.0, False)]:  # the gradient points to the centre
        slope = features.astype(float).T @ (expit(features.astype(float) @ theta + offset) - labels)
        cosine = -slope @ theta / np.linalg.norm(slope) / np.linalg.norm(theta)
        assert (cosine > 1 - 1e-5) == is_least


@pytest.mark.parametrize("radius", [1e-3, 0.5, 3.0])
def test_a_radius_costs_no_search(pairs, monkeypatch, radius):
    monkeypatch.setattr(large, "LARGE_SIZE", 100)
    fitted = estimate(debiased_rr(), *pairs, key=KEY, epsilon=0.1, radius=radius)
    assert fitted.converged
    assert np.linalg.norm(fitted.theta) == pytest.approx(radius, rel=1e-5)
    assert fitted.steps <= 10


def test_wrong_offsets_are_refused(pairs):
    for estimator, offset, message in [
        (mle(), np.ones(3), rf"one margin per label, {COUNT}, got shape \(3,\)"),
        (mle(), np.full(COUNT, np.inf), r"offset must be finite, got inf at index \(0,\)"),
        (mle(), np.full(COUNT, 1j), "offset must be numbers, got dtype complex128"),
        (mle(zero_sum=True), np.ones(COUNT), "offset must be left out for mle"),
    ]:
        with pytest.raises(ValueError, match=message):
            estimate(estimator, *pairs, key=KEY, offset=offset)
    with pytest.raises(ValueError, match="offset must be left out with intervals"):
        estimate(mle(), *pairs, key=KEY, offset=np.ones(COUNT), intervals="sandwich")


def test_a_step_minimises_the_quadratic_model_with_its_ridge():
    features = np.random.default_rng(0).normal(size=(30, 3)).astype(default_float())
    second, linear = features.T @ features / 30, np.array([0.3, -0.2, 0.1])
    problem = _Problem(features, large.Moments.of(features), linear, None, 1.0, np.inf, None)
    origin = _Point(np.zeros(3), np.zeros(30))
    gradient, product = problem.gradient(origin)
    step = problem.newton_step(origin, gradient, product, problem.precondition(gradient, 0.0), 1e-16)
    np.testing.assert_allclose(step.theta, -np.linalg.solve(second / 4 + np.eye(3), gradient), rtol=1e-4)


@pytest.mark.parametrize("steps", [1, 2])
def test_without_convergence_the_certificate_is_at_theta(pairs, monkeypatch, steps):
    monkeypatch.setattr(large, "LARGE_SIZE", 100)
    monkeypatch.setattr(large_newton, "MAX_STEPS", steps)
    with pytest.warns(RuntimeWarning, match="did not converge"):
        found = estimate(mle(), *pairs, key=KEY)
    features = pairs[0].astype(float)
    gradient = features.T @ (1 / (1 + np.exp(-features @ np.asarray(found.theta))) - pairs[1]) / len(features)
    unit = 2.0 ** np.floor(np.log2(np.sqrt(np.mean(features**2))))
    np.testing.assert_allclose(found.certificate, np.linalg.norm(gradient) / unit, rtol=1e-3)
    assert not found.converged

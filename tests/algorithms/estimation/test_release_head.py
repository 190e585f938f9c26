"""Released heads: exact sensitivity, noise and claim of the statistic, and planted leaks that the checks catch."""

import itertools
import math
from fractions import Fraction

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxdp.estimation import _release_head, objective_perturbation, release_head
from jaxdp.mechanisms import analytic_gaussian, zcdp_rho

BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def table(count, dim, seed=0):
    random = np.random.default_rng(seed)
    features = random.normal(size=(count, dim)) * np.arange(1, dim + 1) ** -0.5
    theta = random.normal(size=dim)
    theta *= 2 / np.std(features @ theta)
    labels = (random.random(count) < 1 / (1 + np.exp(-features @ theta))).astype(float)
    return features, labels, theta


@pytest.fixture
def releases(monkeypatch):
    """Records whole sums (by differences of a noise that is 0) and the variances of the noise."""
    variances = []

    def no_noise(size, variance):
        variances.append(variance)
        return [0] * size

    monkeypatch.setattr(_release_head, "secret_discrete_gaussian", no_noise)
    return variances


def whole_sum(features, doubled, weights, persons=None, rho=0.5):
    """Returns the whole sum of 2 y v, and the step."""
    rows = features.astype(np.float32).copy()
    largest = np.abs(rows * weights[:, None]).max()
    step = 2.0 ** (math.ceil(math.log2(largest)) - _release_head.BITS)
    report, reach = _release_head._secret_report(rho, persons, rows, np.asarray(doubled, float), weights)
    return np.rint(report * 2 / step).astype(object), reach * 2 / step


@pytest.mark.parametrize("of_persons", [False, True])
def test_no_change_of_labels_exceeds_the_sensitivity_of_the_noise(of_persons, releases):
    """Enumerates all labels of a unit in exact integers; planted: noise for one label, where persons change."""
    features = table(7, 3)[0]
    weights = np.asarray([1.0, 0.3, 1.0, 0.5, 1.0, 1.0, 0.7])
    persons = np.asarray([0, 0, 0, 1, 1, 2, 3]) if of_persons else None
    units = [np.flatnonzero(persons == one) for one in range(4)] if of_persons else [[row] for row in range(7)]
    rho, largest = Fraction(1, 2), 0
    for rows in units:
        sums = []
        for answers in itertools.product((0, 1, 2), repeat=len(rows)):
            doubled = np.ones(7)
            doubled[rows] = answers
            sums.append(whole_sum(features, doubled, weights, persons, float(rho))[0])
        changes = [sum(int(x) ** 2 for x in first - second) for first, second in itertools.combinations(sums, 2)]
        largest = max(largest, *changes)
    variance = releases[-1]
    assert len(set(releases)) == 1
    assert largest <= 2 * rho * variance
    assert largest > 0.5 * float(2 * rho * variance)  # noise is not far too large
    if of_persons:
        whole_sum(features, np.ones(7), weights, None, float(rho))
        assert largest > 2 * rho * releases[-1]


def test_with_little_noise_the_head_is_the_simulated_one(releases, monkeypatch):
    """Fits both at the same noise, and so with the same weights and ridge; planted: labels of the other sign."""
    little = analytic_gaussian(1e6, 1e-6)
    monkeypatch.setattr(_release_head, "zcdp_rho", lambda epsilon, delta: 1 / (2 * little**2))
    features, labels, _ = table(2000, 3)
    labels[:50] = 0.5
    released = release_head(features, labels, **BUDGET)
    simulated = objective_perturbation(geometry="whitened", weights="cut")
    params = simulated.params(epsilon=1e6, delta=1e-6)
    assert simulated.large is not None
    clear, planted = (
        np.asarray(simulated.large(jax.random.key(0), params, features, jnp.asarray(answers)).theta)
        for answers in (labels, 1 - labels)
    )
    assert released.converged
    assert np.abs(features @ (released.theta - clear)).max() < 1e-3
    assert np.abs(features @ (released.theta - planted)).max() > 1
    assert len(releases) == 1


def test_an_offset_changes_the_fit_and_not_the_released_sum(releases, monkeypatch):
    """Moves part of the truth into an offset; planted: the offset is not added."""
    monkeypatch.setattr(_release_head, "zcdp_rho", lambda epsilon, delta: 1e9)
    features, labels, theta = table(2000, 3)
    options = BUDGET | {"margin_stddev": math.inf}  # no ridge, which would shrink theta alone
    sums, draw = [], _release_head._secret_report
    monkeypatch.setattr(_release_head, "_secret_report", lambda *arguments: sums.append(draw(*arguments)) or sums[-1])
    whole = release_head(features, labels, **options).theta
    corrected = release_head(features, labels, offset=features @ theta, **options).theta
    np.testing.assert_allclose(corrected + theta, whole, atol=2e-3)
    assert np.abs(corrected - whole).max() > 0.1
    np.testing.assert_array_equal(sums[0][0], sums[1][0])
    assert sums[0][1] == sums[1][1]


def test_noise_has_the_variance_of_the_claim(monkeypatch):
    """Tests reports of one data set; planted: half the variance."""
    features, labels, _ = table(200, 40)
    rho, ones = zcdp_rho(**BUDGET), np.ones(200)

    def reports(scale):
        draw = _release_head.secret_discrete_gaussian
        with monkeypatch.context() as patch:
            patch.setattr(
                _release_head, "secret_discrete_gaussian", lambda size, variance: draw(size, variance * scale)
            )
            rows = features.astype(np.float32)
            return _release_head._secret_report(rho, None, rows, 2 * labels, ones)

    report, reach = reports(1)
    exact, stddev = features.astype(np.float32).T @ labels, reach / math.sqrt(2 * rho)
    assert reach == pytest.approx(np.linalg.norm(features, axis=1).max(), rel=1e-4)
    squares = np.sum(((report - exact) / stddev) ** 2)
    assert stats.chi2(40).cdf(squares) > 1e-6
    assert stats.chi2(40).sf(squares) > 1e-6
    planted = [np.sum(((reports(Fraction(1, 2))[0] - exact) / stddev) ** 2) for _ in range(10)]
    assert stats.chi2(400).cdf(sum(planted)) < 1e-6


def test_the_released_head_is_fresh_and_useful():
    features, labels, theta = table(4000, 4)
    persons = np.arange(4000) // 4
    first, second = (release_head(features, labels, **BUDGET, persons=persons) for _ in range(2))
    assert not np.array_equal(first.theta, second.theta)
    assert str(first.claim) == "(1, 1e-06)-DP, central, one person"
    assert first.claim.numerical_delta == 0
    assert np.mean((features @ first.theta > 0) == (features @ theta > 0)) > 0.85


def test_no_error_or_result_depends_on_bad_labels(releases):
    features, labels, _ = table(300, 3)
    ties, odd = labels.copy(), labels.copy()
    ties[:3], odd[:3] = (0.5, 1.0, 0.0), (math.nan, 7.0, -math.inf)
    first, second = (release_head(features, values, **BUDGET).theta for values in (ties, odd))
    assert np.array_equal(first, second)


def test_bad_input_is_refused():
    features, labels, _ = table(30, 3)
    for values, message in [
        ({"epsilon": math.inf}, "epsilon must be finite for a release"),
        ({"epsilon": -1.0}, "epsilon must be > 0"),
        ({"delta": 0.0}, "delta must be"),
        ({"margin_stddev": 0.0}, "margin_stddev must be > 0"),
        ({"radius": -1.0}, "radius must be"),
        ({"persons": [1, 2]}, r"persons must have one id per label, 30, got shape \(2,\)"),
    ]:
        with pytest.raises(ValueError, match=message):
            release_head(features, labels, **{**BUDGET, **values})
    for bad, message in [(features * 0, "a row that is not zero"), (features[0], "features"), (features[:9], "labels")]:
        with pytest.raises(ValueError, match=message):
            release_head(bad, labels, **BUDGET)
    masked = np.ma.array(np.asarray(labels), mask=np.arange(30) < 2)
    with pytest.raises(ValueError, match="labels must have no masked entries, got 2 of them"):
        release_head(features, masked, **BUDGET)
    for bad in (np.asarray(["won"] * 30), np.ones(30, complex)):
        with pytest.raises(ValueError, match="labels must be a vector of real numbers"):
            release_head(features, bad, **BUDGET)

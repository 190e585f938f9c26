import math

import numpy as np
import pytest
import scipy.stats

from jaxdp.audit import clopper_pearson, epsilon_lower_bound


@pytest.mark.parametrize("trials", [1, 10, 1000, 10**6, 2 * 10**9])
@pytest.mark.parametrize("confidence", [0.5, 0.95, 1 - 1e-7])
def test_clopper_pearson_is_scipys(trials, confidence):
    counts = np.unique(np.concatenate([[0, 1, trials - 1, trials], np.linspace(0, trials, 20).astype(int)]))
    lower, upper = clopper_pearson(counts, trials, confidence=confidence)
    error = (1 - confidence) / 2
    with np.errstate(invalid="ignore"):
        expected_lower = np.where(counts == 0, 0, scipy.stats.beta.ppf(error, counts, trials - counts + 1))
        expected_upper = np.where(counts == trials, 1, scipy.stats.beta.isf(error, counts + 1, trials - counts))
    np.testing.assert_allclose(lower, expected_lower, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(upper, expected_upper, rtol=1e-9, atol=1e-9)
    for i in [0, len(counts) // 3, -1] if trials <= 10**6 else []:
        interval = scipy.stats.binomtest(int(counts[i]), trials).proportion_ci(confidence, "exact")
        np.testing.assert_allclose([lower[i], upper[i]], [interval.low, interval.high], rtol=1e-9, atol=1e-9)


def test_coverage_is_at_least_the_confidence():
    """Sums exactly the binomial probabilities of the counts with an interval that contains p."""
    for trials, p in [(10, 0.03), (50, 0.5), (200, 0.9)]:
        counts = np.arange(trials + 1)
        lower, upper = clopper_pearson(counts, trials, confidence=0.9)
        covered = (lower <= p) & (p <= upper)
        assert scipy.stats.binom.pmf(counts, trials, p)[covered].sum() >= 0.9


def test_epsilon_by_hand():
    bound = epsilon_lower_bound([100, 10], 1000, [300, 500], 2000, delta=0.01, confidence=0.9)
    error = 0.1 / 8  # two events, two directions, two sides
    p = scipy.stats.beta.ppf(error, 500, 1501)
    q = scipy.stats.beta.isf(error, 11, 990)
    assert bound.epsilon == pytest.approx(math.log((p - 0.01) / q), rel=1e-12)
    assert (bound.event, bound.direction) == (1, "second over first")
    assert epsilon_lower_bound([5], 1000, [0], 1000, delta=0.1).epsilon == 0
    assert epsilon_lower_bound([1000], 1000, [1000], 1000).epsilon == 0


def test_the_bound_holds_as_often_as_it_says():
    """Tries twenty events at once, all at the true epsilon: the largest bound exceeds it in at most 5% of runs."""
    rng = np.random.default_rng(0)
    p, epsilon, trials, runs = 0.2, 1.0, 5000, 400
    likely = rng.binomial(trials, p, (runs, 20))
    unlikely = rng.binomial(trials, p * math.exp(-epsilon), (runs, 20))
    bounds = [epsilon_lower_bound(a, trials, b, trials).epsilon for a, b in zip(likely, unlikely, strict=True)]
    assert np.mean(np.array(bounds) > epsilon) <= 0.05
    assert np.median(bounds) > 0.8


def test_errors():
    for bad in [0.0, 1.0, math.nan]:
        with pytest.raises(ValueError, match=rf"confidence must be in \(0, 1\), got {bad}"):
            clopper_pearson([1], 10, confidence=bad)
    for bad in [-1, 11, 0.5, math.nan]:
        with pytest.raises(ValueError, match=r"counts must be integers in \[0, trials\]"):
            clopper_pearson([bad], 10)
    with pytest.raises(ValueError, match="trials must be >= 1, got 0"):
        clopper_pearson([0], 0)
    with pytest.raises(ValueError, match=r"delta must be in \[0, 1\), got 1.0"):
        epsilon_lower_bound([1], 10, [1], 10, delta=1.0)
    for first, second in [([], []), ([1, 2], [1])]:
        with pytest.raises(ValueError, match="both counts must have one shape and at least one event"):
            epsilon_lower_bound(first, 10, second, 10)

"""Intervals of means and shares: SciPy's numbers, and how often they contain the truth."""

import math
from typing import Any

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxdp.stats import mean_interval, share_interval
from tests.stats.coverage import SEEDS, check_coverage, datasets

DISTRIBUTIONS = {  # how values are drawn, and their mean
    "gaussian": (lambda rng, shape: rng.normal(3.0, 2.0, shape), 3.0),
    "gamma": (lambda rng, shape: rng.gamma(4.0, 0.25, shape), 1.0),
    "exponential": (lambda rng, shape: rng.exponential(1.0, shape), 1.0),
    "lognormal": (lambda rng, shape: rng.lognormal(0.0, 1.0, shape), math.exp(0.5)),
}
BOOTSTRAPPED = [("gaussian", n) for n in SEEDS] + [("gamma", n) for n in SEEDS]
BOOTSTRAPPED += [("exponential", 20), ("exponential", 100), ("lognormal", 100)]


@pytest.mark.parametrize("confidence", [0.9, 0.95])
def test_against_scipy(confidence):
    values = datasets(DISTRIBUTIONS["gamma"][0], 7).isel(dataset=slice(5))
    found = mean_interval(values.astype(np.float32), confidence=confidence)
    wide = values.values.astype(np.float32).astype(np.float64)
    low, high = scipy.stats.t.interval(confidence, 6, wide.mean(1), scipy.stats.sem(wide, axis=1))
    for name, expected in (("mean", wide.mean(1)), ("low", low), ("high", high)):
        assert found[name].dims == ("dataset",)
        np.testing.assert_allclose(found[name], expected, rtol=1e-12)


@pytest.mark.parametrize("num_seeds", SEEDS)
def test_students_interval_covers_exactly(num_seeds):
    draw, truth = DISTRIBUTIONS["gaussian"]
    values = datasets(draw, num_seeds)
    found = mean_interval(values)
    check_coverage(found.low, found.high, truth, exact=True)
    if num_seeds == 8:
        half = 1.96 * values.std("seed", ddof=1) / math.sqrt(num_seeds)
        with pytest.raises(AssertionError):  # planted: the normal quantile
            check_coverage(found["mean"] - half, found["mean"] + half, truth)
        twice = found.high - found.low
        with pytest.raises(AssertionError):  # planted: twice as wide as it need be
            check_coverage(found["mean"] - twice, found["mean"] + twice, truth, exact=True)


@pytest.mark.parametrize(("distribution", "num_seeds"), BOOTSTRAPPED)
def test_the_bootstrap_covers(distribution, num_seeds):
    draw, truth = DISTRIBUTIONS[distribution]
    values = datasets(draw, num_seeds)
    found = mean_interval(values, method="bootstrap", num_resamples=999)
    check_coverage(found.low, found.high, truth)
    if distribution != "gaussian" and num_seeds < 100:
        student = mean_interval(values)
        with pytest.raises(AssertionError):  # why there is a bootstrap
            check_coverage(student.low, student.high, truth)
    if num_seeds == 8:
        times = np.random.default_rng(0).multinomial(8, np.full(8, 1 / 8), 999)
        low, high = np.quantile(values.values @ times.T / 8, [0.025, 0.975], axis=1)
        with pytest.raises(AssertionError):  # planted: percentiles
            check_coverage(low, high, truth)


def test_the_bootstrap_is_wide_enough_but_no_wider():
    """Checks that it contains Student's interval, and is on average over 100 Gaussian seeds at most 2% wider."""
    values = datasets(DISTRIBUTIONS["gaussian"][0], 100).isel(dataset=slice(1000))
    found, student = mean_interval(values, method="bootstrap"), mean_interval(values)
    assert bool((found.low <= student.low).all())
    assert bool((found.high >= student.high).all())
    widths = (found.high - found.low) / (student.high - student.low)
    assert 1 < float(widths.mean()) < 1.04


def test_the_bootstrap_is_the_studentized_one():
    """Computes it by its definition, resample by resample."""
    values = np.random.default_rng(3).lognormal(0, 1, 12)
    found = mean_interval(xr.DataArray(values, dims="seed"), method="bootstrap", num_resamples=199, confidence=0.9)
    rng = np.random.default_rng([0, 0])
    times = rng.multinomial(12, np.full(12, 1 / 12), 199)
    again = [np.repeat(values, each) for each in times]
    ratios = np.sort([(each.mean() - values.mean()) / scipy.stats.sem(each) for each in again])
    low = values.mean() - ratios[-10] * scipy.stats.sem(values)  # the 10th of 199 from either end: 10 / (199 + 1) = 5%
    high = values.mean() - ratios[9] * scipy.stats.sem(values)
    student = mean_interval(xr.DataArray(values, dims="seed"), confidence=0.9)
    assert float(found.low) == pytest.approx(min(low, float(student.low)), rel=1e-9)
    assert float(found.high) == pytest.approx(high, rel=1e-9)
    assert high > float(student.high)


def test_the_bootstrap_follows_from_its_number(monkeypatch):
    values = datasets(DISTRIBUTIONS["gamma"][0], 9).isel(dataset=slice(40))
    found = mean_interval(values, method="bootstrap", random_state=4)
    xr.testing.assert_identical(found, mean_interval(values, method="bootstrap", random_state=4))
    alone = mean_interval(values.isel(dataset=7), method="bootstrap", random_state=4)
    xr.testing.assert_allclose(found.isel(dataset=7), alone, rtol=1e-12)  # with any other content of the array
    assert float(abs(found.low - mean_interval(values, method="bootstrap", random_state=5).low).max()) > 0
    monkeypatch.setattr("jaxdp.stats.intervals.CELLS", 3000)  # several blocks of points, and of resamples
    blocks = mean_interval(values, method="bootstrap", random_state=4)
    assert 0 < float(abs(found.low - blocks.low).max()) < 0.1
    alone = mean_interval(values.isel(dataset=7), method="bootstrap", random_state=4)
    xr.testing.assert_allclose(blocks.isel(dataset=7), alone, rtol=1e-12)


@pytest.mark.parametrize("method", ["t", "bootstrap"])
def test_nan_is_not_skipped_and_a_single_seed_has_no_interval(method):
    values = xr.DataArray(np.arange(30.0).reshape(3, 10), dims=("x", "seed"))
    values[1, 4] = np.nan
    values[2] = 5.0
    found = mean_interval(values, method=method)
    for name in ("mean", "low", "high"):
        np.testing.assert_array_equal(np.isnan(found[name]), [False, True, False])
        assert name == "mean" or float(found[name][2]) == 5.0  # all seeds alike
    single = mean_interval(values.isel(seed=[4]), method=method)
    np.testing.assert_array_equal(single["mean"], [4.0, np.nan, 5.0])
    assert bool((np.isnan(single.low) & np.isnan(single.high)).all())


def test_the_bootstrap_of_three_seeds_is_infinite():
    found = mean_interval(xr.DataArray([1.0, 2.0, 4.0], dims="seed"), method="bootstrap")
    assert (float(found.low), float(found.high)) == (-math.inf, math.inf)


@pytest.mark.parametrize("method", ["t", "bootstrap"])
def test_lazy_arrays_and_other_names_of_dimensions(method):
    values = xr.DataArray(np.random.default_rng(0).normal(size=(6, 2, 3)), dims=("trial", "x", "y"))
    lazy = pytest.importorskip("dask.array") and values.chunk({"x": 1, "trial": 4})
    found = mean_interval(lazy, "trial", method=method)
    assert isinstance(found.low.data, np.ndarray)
    xr.testing.assert_allclose(found, mean_interval(values, "trial", method=method))
    turned = mean_interval(values.transpose("y", "trial", "x"), "trial", method=method)
    xr.testing.assert_allclose(found, turned.transpose("x", "y"))


def test_shares():
    hits = xr.DataArray([[1, 1, 1, 0], [0, 0, 0, 0]], {"x": [3, 4]}, ("x", "seed"))
    found = share_interval(hits > 0, confidence=0.9)
    for row, count in enumerate((3, 0)):
        exact = scipy.stats.binomtest(count, 4).proportion_ci(0.9)
        assert float(found.share[row]) == count / 4
        assert (float(found.low[row]), float(found.high[row])) == pytest.approx((exact.low, exact.high), abs=1e-12)
    gone = share_interval(hits.where(hits.x == 3))
    np.testing.assert_array_equal(np.isnan(gone.low), [False, True])
    with pytest.raises(ValueError, match=r"correct must be 0 or 1, got values from 0\.0 to 2\.0"):
        share_interval(hits.rename("correct") * 2)


@pytest.mark.parametrize("num_seeds", SEEDS)
def test_shares_cover(num_seeds):
    for probability in (0.05, 0.5, 0.97):
        hits = datasets(lambda rng, shape, p=probability: rng.random(shape) < p, num_seeds)
        found = share_interval(hits)
        check_coverage(found.low, found.high, probability)
    half = 1.96 * np.sqrt(found.share * (1 - found.share) / num_seeds)
    with pytest.raises(AssertionError):  # planted: Wald's interval near 1
        check_coverage(found.share - half, found.share + half, 0.97)


VALUES = xr.DataArray(np.ones((2, 3)), dims=("x", "seed"))
BOTH: Any = xr.Dataset({"a": VALUES, "b": VALUES})
ARRAY: Any = np.ones(3)


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda: mean_interval(BOTH),
            "values must be one variable of the Dataset: a, b",
        ),
        (lambda: mean_interval(ARRAY), "values must be an xarray DataArray, got ndarray"),
        (lambda: mean_interval(VALUES.astype(str)), "values must be real numbers, got dtype <U"),
        (
            lambda: mean_interval(VALUES, "lane"),
            r"values must have at least one value along 'lane', got \(x: 2, seed: 3\)",
        ),
        (
            lambda: mean_interval(VALUES[:, :0]),
            r"values must have at least one value along 'seed', got \(x: 2, seed: 0\)",
        ),
        (lambda: mean_interval(VALUES, confidence=95), r"confidence must be in \(0, 1\), got 95"),
        (lambda: mean_interval(VALUES, method="bca"), "method must be one of t, bootstrap, got 'bca'"),
        (lambda: mean_interval(VALUES, method="bootstrap", num_resamples=20), "num_resamples must be >= 39, got 20"),
        (
            lambda: mean_interval(VALUES, method="bootstrap", confidence=0.94, num_resamples=32),
            "num_resamples must be >= 33, got 32",
        ),
        (
            lambda: mean_interval(VALUES, method="bootstrap", random_state=-1),
            "random_state must be an integer >= 0",
        ),
        (lambda: share_interval(VALUES, confidence=0.0), r"confidence must be in \(0, 1\), got 0"),
    ],
)
def test_wrong_arguments(wrong, text):
    with pytest.raises(ValueError, match=text):
        wrong()

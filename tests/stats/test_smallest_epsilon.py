"""The smallest epsilon that is shown to be good enough: how often it is not."""

import math

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxdp.stats import mean_interval, smallest_epsilon
from tests.stats.coverage import DATASETS, SEEDS

EPSILONS = [0.1, 0.2, 0.5, 1.0, 2.0, math.inf]
MEANS = np.array([1.3, 1.0001, 1.0001, 1.0001, 0.4, 0.3])  # three lie just above the required number
GOOD = 2.0


def check_error(found, good=GOOD):
    """Checks that at most 5% (up to 5 standard errors, 0.8%) of 20,000 are not good enough."""
    wrong = float((found < good).mean())
    print(f"wrong: {wrong:.4f}, right: {float((found == good).mean()):.4f}")
    assert wrong <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / DATASETS)


def curves(num_seeds, means=MEANS, common=0.0):
    rng = np.random.default_rng(3)
    noise = rng.normal(size=(DATASETS, len(EPSILONS), num_seeds)) + common * rng.normal(size=(DATASETS, 1, num_seeds))
    return xr.DataArray(means[:, None] + 0.5 * noise, {"epsilon": EPSILONS}, ("dataset", "epsilon", "seed"))


@pytest.mark.parametrize("num_seeds", SEEDS)
@pytest.mark.parametrize("common", [0.0, 1.0])
def test_what_is_returned_is_good_enough(num_seeds, common):
    metric = curves(num_seeds, common=common)
    found = smallest_epsilon(metric, at_most=1.0)
    check_error(found)
    # Power: the t test of 2.0 alone finds the right epsilon, where infinity is no harder.
    power = {8: 0.4, 20: 0.8, 100: 0.9}[num_seeds]
    assert float((found == GOOD).mean()) > power
    shown = mean_interval(metric, confidence=0.9).high <= 1.0
    smallest = shown.epsilon.where(shown).min("epsilon")
    with pytest.raises(AssertionError):  # planted: every epsilon is tested, without a sequence
        check_error(smallest)
    half = 1.645 * metric.std("seed", ddof=1) / math.sqrt(num_seeds)
    passed = (metric.mean("seed") + half <= 1.0).isel(epsilon=slice(None, None, -1)).cumprod("epsilon").sum("epsilon")
    normal = xr.DataArray(np.array([math.nan, *EPSILONS[::-1]])[passed.values])
    if num_seeds == 8:
        with pytest.raises(AssertionError):  # planted: the normal quantile
            check_error(normal)


def test_a_mean_that_is_not_monotone_stops_the_sequence():
    metric = curves(20, means=np.array([0.1, 0.1, 0.1, 1.0001, 0.1, 0.1]))
    check_error(smallest_epsilon(metric, at_most=1.0))
    shares = smallest_epsilon(metric.isel(dataset=slice(200)).isel(epsilon=[4, 0, 5, 2, 3, 1]), at_most=1.0)
    np.testing.assert_array_equal(shares, smallest_epsilon(metric.isel(dataset=slice(200)), at_most=1.0))  # any order


@pytest.mark.parametrize("num_seeds", SEEDS)
def test_shares_that_are_large_enough(num_seeds):
    rng = np.random.default_rng(4)
    chances = np.array([0.5, 0.6999, 0.6999, 0.6999, 0.99, 1.0])
    hits = rng.random((DATASETS, len(EPSILONS), num_seeds)) < chances[:, None]
    metric = xr.DataArray(hits, {"epsilon": EPSILONS}, ("dataset", "epsilon", "seed"))
    found = smallest_epsilon(metric, at_least=0.7)
    check_error(found)
    assert (float((found == GOOD).mean()) > 0.8) == (num_seeds > 8)  # 0.7^8 > 5%: 8 seeds cannot show 70%
    np.testing.assert_array_equal(found, smallest_epsilon(1 - metric, at_most=0.3 + 1e-9))
    if num_seeds == 8:
        rare = xr.DataArray(rng.random(hits.shape) < 0.8999, metric.coords, metric.dims)
        check_error(smallest_epsilon(rare, at_least=0.9).fillna(1e9), good=1e9)  # none is good enough
        with pytest.raises(AssertionError):  # planted: Student's limit, which takes 8 hits of 8 for certain
            check_error(smallest_epsilon(rare, at_least=0.9, method="t").fillna(1e9), good=1e9)


def test_by_hand():
    rng = np.random.default_rng(5)
    values = rng.normal([[5.0], [2.0], [1.0]], 0.5, (3, 7))
    metric = xr.DataArray(values, {"budget": [1.0, 3.0, 9.0]}, ("budget", "trial"))
    limits = [row.mean() + scipy.stats.t.ppf(0.99, 6) * scipy.stats.sem(row) for row in values]
    names = {"along": "budget", "over": "trial", "confidence": 0.99}
    for row, budget in enumerate((1.0, 3.0, 9.0)):
        assert float(smallest_epsilon(metric, limits[row] * (1 + 1e-9), **names)) == budget
        beyond = smallest_epsilon(metric, limits[row] * (1 - 1e-9), **names)
        np.testing.assert_equal(float(beyond), [3.0, 9.0, math.nan][row])
    assert smallest_epsilon(metric, 0.0, **names).name == "smallest_budget"
    np.testing.assert_array_equal(smallest_epsilon(-metric, at_least=-limits[1] * (1 + 1e-9), **names), 3.0)


def test_nan_and_a_single_seed_show_nothing():
    metric = curves(20).isel(dataset=slice(3)).copy()
    metric[0, 5, 3] = math.nan
    metric[1, 4, 3] = math.nan
    np.testing.assert_array_equal(smallest_epsilon(metric, at_most=1.0), [math.nan, math.inf, 2.0])
    assert bool(np.isnan(smallest_epsilon(metric.isel(seed=[0]), at_most=1.0)).all())
    hits = (metric > -99).where(metric.notnull())
    np.testing.assert_array_equal(smallest_epsilon(hits, at_least=0.5, method="share"), [math.nan, math.inf, 0.1])


def test_values_of_0_and_1_are_no_shares_if_the_bound_is_none():
    zeros = xr.DataArray(np.zeros((3, 1)), {"epsilon": [0.5, 1.0, 2.0]}, ("epsilon", "seed"))
    with pytest.warns(RuntimeWarning, match="too few repetitions, 1"):
        assert np.isnan(smallest_epsilon(zeros, at_most=1.5))


def test_lazy_arrays():
    pytest.importorskip("dask.array")
    metric = curves(20).isel(dataset=slice(6))
    lazy = metric.chunk({"epsilon": 2, "dataset": 5})
    np.testing.assert_array_equal(smallest_epsilon(lazy, at_most=1.0), smallest_epsilon(metric, at_most=1.0))


METRIC = xr.DataArray(np.ones((2, 3)), {"epsilon": [1.0, 2.0]}, ("epsilon", "seed"))


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda: smallest_epsilon(METRIC),
            "exactly one of at_most and at_least must be given, got at_most=None and at_least=None",
        ),
        (
            lambda: smallest_epsilon(METRIC, 1.0, at_least=2.0),
            "exactly one of at_most and at_least must be given, got at_most=1.0",
        ),
        (lambda: smallest_epsilon(METRIC, at_most=math.nan), "at_most must be finite, got nan"),
        (
            lambda: smallest_epsilon(METRIC.drop_vars("epsilon"), 1.0),
            "epsilon must have numbers as coordinate, got none",
        ),
        (
            lambda: smallest_epsilon(METRIC[[0, 0]], 1.0),
            r"epsilon must have numbers as coordinate, all different and none NaN, got \[1.0, 1.0",
        ),
        (lambda: smallest_epsilon(METRIC + 1, 1.0, method="share"), "hits must be 0 or 1, got values from 2"),
        (lambda: smallest_epsilon(METRIC, 1.0, method="normal"), "method must be one of t, share, got 'normal'"),
        (lambda: smallest_epsilon(METRIC, 1.0, along="seed"), "along and over must be different dimensions"),
        (lambda: smallest_epsilon(METRIC, 1.0, confidence=1.0), r"confidence must be in \(0, 1\), got 1"),
    ],
)
def test_wrong_arguments(wrong, text):
    with pytest.raises(ValueError, match=text):
        wrong()

"""Paired differences: SciPy's p-values, Holm by hand, coverage."""

import math

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxdp.stats import mean_interval, paired
from tests.stats.coverage import DATASETS, SEEDS, check_coverage

MEANS = (3.0, 2.5, 2.5)
LEARNERS = ["mine", "theirs", "also"]


def worlds(num_seeds, own=0.5, datasets=DATASETS):
    """Draws regrets that share their seed's world, which is more of their spread than each learner's own part."""
    rng = np.random.default_rng(1)
    values = np.array(MEANS)[:, None] + own * rng.normal(size=(datasets, 3, num_seeds))
    values += rng.normal(size=(datasets, 1, num_seeds))
    return xr.DataArray(values, {"learner": LEARNERS}, ("dataset", "learner", "seed"))


@pytest.mark.parametrize("num_seeds", SEEDS)
def test_paired_differences_cover(num_seeds):
    values = worlds(num_seeds)
    found = paired(values, "learner", against="theirs", adjust=None)
    assert list(found.learner.values) == ["mine", "also"]
    for learner, truth in (("mine", 0.5), ("also", 0.0)):
        one = found.sel(learner=learner)
        check_coverage(one.low, one.high, truth, exact=True)
    rejected = float((found.p_value.sel(learner="also") <= 0.05).mean())
    assert 0.04 <= rejected <= 0.055  # there is no difference
    if num_seeds == 8:
        half = 1.96 / 2.3646 * (one.high - one.low) / 2
        with pytest.raises(AssertionError):  # planted: the normal quantile
            check_coverage(one.difference - half, one.difference + half, truth)
    apart = mean_interval(values)
    errors = ((apart.high - apart["mean"]) ** 2).sel(learner=["also", "theirs"]).sum("learner") ** 0.5
    with pytest.raises(AssertionError):  # planted: the standard error of differences that are not paired
        check_coverage(one.difference - errors, one.difference + errors, truth, exact=True)


def test_no_pairing_is_too_narrow_where_seeds_of_two_curves_oppose():
    values = worlds(20)
    mirrored = values.copy()
    mirrored.loc[{"learner": "theirs"}] = 5 - values.sel(learner="theirs")
    one = paired(mirrored, "learner", against="theirs", adjust=None).sel(learner="also")
    check_coverage(one.low, one.high, 0.0, exact=True)
    apart = mean_interval(mirrored)
    errors = ((apart.high - apart["mean"]) ** 2).sel(learner=["also", "theirs"]).sum("learner") ** 0.5
    with pytest.raises(AssertionError):  # planted: not paired
        check_coverage(one.difference - errors, one.difference + errors, 0.0)


def test_all_calls_are_right_with_holm_and_not_without():
    """Makes sixteen comparisons, with no difference in any."""
    rng = np.random.default_rng(2)
    values = rng.normal(size=(400, 17, 8)) + rng.normal(size=(400, 1, 8))
    called = {"p_adjusted": 0, "p_value": 0}
    for dataset in values:
        found = paired(xr.DataArray(dataset, dims=("learner", "seed")), "learner", against=0)
        for name in called:
            called[name] += bool((found[name] <= 0.05).any())
    assert called["p_adjusted"] / 400 <= 0.05 + 5 * math.sqrt(0.05 * 0.95 / 400)
    assert called["p_value"] / 400 > 0.3  # planted: no correction


def test_against_scipy_and_holm_by_hand():
    values = worlds(12, own=0.3, datasets=2)
    found = paired(values, "learner", against="also", confidence=0.9)
    expected = {}
    for dataset in range(2):
        for learner in ("mine", "theirs"):
            pair = values.isel(dataset=dataset).sel(learner=[learner, "also"]).values
            test = scipy.stats.ttest_rel(*pair)
            one = found.isel(dataset=dataset).sel(learner=learner)
            limits = test.confidence_interval(0.9)
            assert float(one.difference) == pytest.approx(pair[0].mean() - pair[1].mean(), rel=1e-12)
            assert float(one.p_value) == pytest.approx(test.pvalue, rel=1e-9)
            assert (float(one.low), float(one.high)) == pytest.approx((limits.low, limits.high), rel=1e-9)
            expected[dataset, learner] = test.pvalue
    smallest, least = sorted(expected.items(), key=lambda item: item[1]), 0.0
    for rank, ((dataset, learner), p_value) in enumerate(smallest):
        least = min(1.0, max(least, (4 - rank) * p_value))
        adjusted = found.p_adjusted.isel(dataset=dataset).sel(learner=learner)
        assert float(adjusted) == pytest.approx(least, rel=1e-9)


def test_the_cost_of_privacy_is_against_infinity():
    regret = xr.DataArray(
        np.arange(12.0).reshape(3, 4) ** 2, {"epsilon": [0.1, math.inf, 1.0], "delta": 1e-6}, ("epsilon", "seed")
    )
    regret = regret.assign_coords(model=("epsilon", ["local", "none", "local"]))
    cost = paired(regret, "epsilon", against=math.inf)
    np.testing.assert_array_equal(cost.epsilon, [0.1, 1.0])
    np.testing.assert_allclose(cost.difference, (regret.mean("seed") - regret.mean("seed")[1])[[0, 2]])
    assert list(cost.model.values) == ["local", "local"]
    assert float(cost.delta) == 1e-6


def test_what_cannot_be_compared_is_nan_and_counts():
    rng = np.random.default_rng(0)
    values = xr.DataArray(rng.normal([[0.0], [0.1], [2.0], [0.0]], 1.0, (4, 9)), dims=("learner", "seed"))
    values[1, 0] = np.nan
    values[3] = values[0]
    found = paired(values, "learner", against=0)
    assert np.isnan(found.to_array()[:, 0]).all()
    assert float(found.p_adjusted[1]) == pytest.approx(3 * float(found.p_value[1]), rel=1e-12)
    assert [float(found[name][2]) for name in found] == [0, 0, 0, 1, 1]  # the same learner twice
    shifted = paired(values.isel(learner=[0, 3]) + xr.DataArray([0.0, 2.0], dims="learner"), "learner", against=0)
    assert shifted.p_value.item() < 1e-12
    single = paired(values.isel(seed=[1]), "learner", against=0)
    assert not np.isnan(single.difference).any()
    assert np.isnan(single.drop_vars("difference").to_array()).all()


def test_lazy_arrays():
    pytest.importorskip("dask.array")
    values = worlds(5, datasets=6).astype(np.float32)
    found = paired(values.chunk({"learner": 1, "seed": 2}), "learner", against="mine")
    xr.testing.assert_allclose(found, paired(values, "learner", against="mine"))


VALUES = xr.DataArray(np.ones((2, 3)), {"learner": ["x", "y"]}, ("learner", "seed"))


@pytest.mark.parametrize(
    ("wrong", "text"),
    [
        (
            lambda: paired(VALUES, "learner", against="z"),
            "against must be one label of learner, of two or more, got 'z'",
        ),
        (lambda: paired(VALUES[:1], "learner", against="x"), r"of two or more, got 'x' of \['x'\]"),
        (
            lambda: paired(VALUES.isel(learner=[0, 0, 1]), "learner", against="y"),
            r"learner must have different labels, got \['x', 'x', 'y'\]",
        ),
        (lambda: paired(VALUES, "epsilon", against=1.0), "values must have at least one value along 'epsilon'"),
        (lambda: paired(VALUES, "seed", against=1), "along and over must be different dimensions, got 'seed' for both"),
        (lambda: paired(VALUES, "learner", against="x", adjust="bonferroni"), "adjust must be one of holm, got"),
        (lambda: paired(VALUES.to_dataset(name="regret"), "learner", against="x"), "variable of the Dataset: regret"),  # pyright: ignore[reportArgumentType]
    ],
)
def test_wrong_arguments(wrong, text):
    with pytest.raises(ValueError, match=text):
        wrong()

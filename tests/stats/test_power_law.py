"""Fitted exponents: planted ones are found, and their intervals hold them as often as they say."""

import math

import numpy as np
import pytest
import xarray as xr

from jaxdp.stats import power_law
from tests.stats import coverage

ROUNDS = np.geomspace(100, 10_000, 5)
SEEDS = 40
DATASETS = coverage.DATASETS


def planted(exponent, *, paired, datasets=DATASETS):
    """Draws skew values about 3 x^exponent; one seed's are either independent along x, or nearly the same."""
    rng = np.random.default_rng(5)
    own = rng.gamma(4, 1 / 4, (datasets, SEEDS, 1)) if paired else 1.0
    noise = own * rng.gamma(4, 1 / 4, (datasets, SEEDS, len(ROUNDS)))
    return xr.DataArray(3 * ROUNDS**exponent * noise, {"round": ROUNDS}, ("dataset", "seed", "round"))


def check_coverage(low, high, exponent, datasets=DATASETS):
    """Checks 95% of the intervals, up to 5 standard errors and 1% for so few seeds of a skew distribution."""
    share = coverage.covered(low, high, exponent)
    assert abs(share - 0.95) <= 5 * math.sqrt(0.95 * 0.05 / datasets) + 0.01


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize("exponent", [-1.0, 0.5])
def test_planted_exponents(exponent, paired):
    fit = power_law(planted(exponent, paired=paired), "round")
    spread = float(fit.exponent.std()) / math.sqrt(DATASETS)
    assert abs(float(fit.exponent.mean()) - exponent) <= 5 * spread + 1e-3
    check_coverage(fit.low, fit.high, exponent)
    with pytest.raises(AssertionError):  # planted: another exponent
        check_coverage(fit.low, fit.high, exponent + 0.05)
    quarter = (fit.high - fit.low) / 4
    with pytest.raises(AssertionError):  # planted: intervals of half the width
        check_coverage(fit.low + quarter, fit.high - quarter, exponent)


def alike(num_seeds, spread, distribution):
    """Draws 20,000 datasets about 3 sqrt(x); one seed's values share a factor as wide as their own part."""
    rng = np.random.default_rng(8)
    sizes = ((DATASETS, num_seeds, 1), (DATASETS, num_seeds, len(ROUNDS)))
    if distribution == "gaussian":
        common, own = (1 + spread * rng.normal(size=size) for size in sizes)
    else:
        common, own = (rng.gamma(1 / spread**2, spread**2, size) for size in sizes)
    return xr.DataArray(3 * ROUNDS**0.5 * common * own, {"round": ROUNDS}, ("dataset", "seed", "round"))


@pytest.mark.parametrize(
    ("num_seeds", "spread", "distribution"),
    [(8, 0.2, "gaussian"), (20, 0.2, "gaussian"), (100, 0.2, "gaussian"), (100, 0.5, "gamma")],
)
def test_curves_that_are_alike_by_seed(num_seeds, spread, distribution):
    values = alike(num_seeds, spread, distribution)
    fit = power_law(values, "round")
    coverage.check_coverage(fit.low, fit.high, 0.5, exact=distribution == "gaussian")
    if num_seeds == 8:
        quarter = (1 - 1.96 / 2.3646) / 2 * (fit.high - fit.low)
        with pytest.raises(AssertionError):  # planted: the normal quantile
            coverage.check_coverage(fit.low + quarter, fit.high - quarter, 0.5)
        logs = np.log(ROUNDS) - np.log(ROUNDS).mean()
        slopes = xr.DataArray(logs / (logs**2).sum(), {"round": ROUNDS}, ("round",))
        errors = values.std("seed", ddof=1) / values.mean("seed") / math.sqrt(num_seeds)
        half = 2.3646 * ((slopes * errors) ** 2).sum("round") ** 0.5
        with pytest.raises(AssertionError):  # planted: as if the places of a curve were of different seeds
            coverage.check_coverage(fit.exponent - half, fit.exponent + half, 0.5, exact=True)


def test_other_confidence():
    values = planted(0.5, paired=True, datasets=3)
    wide, narrow = (power_law(values, "round", confidence=level) for level in (0.99, 0.8))
    ratio = (wide.high - wide.low) / (narrow.high - narrow.low)
    np.testing.assert_allclose(ratio, 2.707913 / 1.303639, rtol=1e-6)  # Student's quantiles, 39 degrees of freedom
    with pytest.raises(ValueError, match="confidence must be in"):
        power_law(values, "round", confidence=95)


def test_against_least_squares_and_the_bootstrap():
    values = planted(0.5, paired=True, datasets=1).isel(dataset=0)
    fit = power_law(values, "round")
    logs = np.log(values.mean("seed"))
    assert float(fit.exponent) == pytest.approx(np.polyfit(np.log(ROUNDS), logs, 1)[0], rel=1e-9)
    drawn = np.random.default_rng(0).integers(SEEDS, size=(2000, SEEDS))
    means = values.values[drawn].mean(1)
    slopes = np.polyfit(np.log(ROUNDS), np.log(means).T, 1)[0]
    half = float(fit.high - fit.low) / 2
    assert half == pytest.approx(2.02 * slopes.std(), rel=0.15)


def test_values_that_have_no_logarithm():
    values = planted(0.5, paired=False, datasets=3).copy()
    values[0] = 0.0
    for value in (np.nan, np.inf):
        values[1, 3, 2] = value
        fit = power_law(values, "round")
        for name in ("exponent", "low", "high"):
            np.testing.assert_array_equal(np.isnan(fit[name]), [True, True, False])
    single = power_law(values.isel(seed=[0], dataset=2), "round")
    assert np.isfinite(single.exponent)
    assert np.isnan(single.low)
    assert np.isnan(single.high)


def test_numbers_may_be_objects():
    values = xr.DataArray(np.asarray([[1.0, 3.0], [2.0, 5.0]]), {"round": [1.0, 2.0]}, ("seed", "round"))
    objects = values.assign_coords(round=np.asarray([1, 2.0], object))
    assert power_law(objects, "round").exponent.item() == power_law(values, "round").exponent.item()


@pytest.mark.parametrize("rounds", [[5.0], [0.0, 1.0], [1.0, math.inf], [1.0, math.nan], [2.0, 2.0], ["a", "b"]])
def test_bad_places(rounds):
    values = xr.DataArray(np.ones((2, len(rounds))), {"round": rounds}, ("seed", "round"))
    with pytest.raises(ValueError, match=r"round must have at least two different values, positive and finite, got \["):
        power_law(values, "round")
    with pytest.raises(ValueError, match="x and over must be different dimensions, got 'seed' for both"):
        power_law(values, "seed")

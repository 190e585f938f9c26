"""Fitted exponents: planted ones are found, and their intervals hold them as often as they say."""

import math

import numpy as np
import pytest
import xarray as xr

from jaxdp.studies.power_laws import power_law

pytestmark = pytest.mark.once

ROUNDS = np.geomspace(100, 10_000, 5)
SEEDS = 40
DATASETS = 2000


def planted(exponent, *, paired, datasets=DATASETS):
    """Values of a skew law about 3 x^exponent; of one seed either independent along x, or nearly the same."""
    rng = np.random.default_rng(5)
    own = rng.gamma(4, 1 / 4, (datasets, SEEDS, 1)) if paired else 1.0
    noise = own * rng.gamma(4, 1 / 4, (datasets, SEEDS, len(ROUNDS)))
    return xr.DataArray(3 * ROUNDS**exponent * noise, {"round": ROUNDS}, ("dataset", "seed", "round"))


def check_coverage(low, high, exponent, datasets=DATASETS):
    """95% of the intervals, up to 5 standard errors and 2% for so few seeds of a skew law."""
    share = float(((low <= exponent) & (exponent <= high)).mean())
    assert abs(share - 0.95) <= 5 * math.sqrt(0.95 * 0.05 / datasets) + 0.02


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
    values[1, 3, 2] = np.nan
    fit = power_law(values, "round")
    for name in ("exponent", "low", "high"):
        np.testing.assert_array_equal(np.isnan(fit[name]), [True, True, False])
    single = power_law(values.isel(seed=[0], dataset=2), "round")
    assert np.isfinite(single.exponent)
    assert np.isnan(single.low)
    assert np.isnan(single.high)


@pytest.mark.parametrize("rounds", [[5.0], [0.0, 1.0], [1.0, math.inf], [1.0, math.nan]])
def test_bad_places(rounds):
    values = xr.DataArray(np.ones((2, len(rounds))), {"round": rounds}, ("seed", "round"))
    with pytest.raises(ValueError, match=r"round must have at least two values, positive and finite, got \["):
        power_law(values, "round")

"""Means, shares and their intervals against SciPy."""

import numpy as np
import pytest
import scipy.stats
import xarray as xr

from jaxdp import plotting

pytestmark = pytest.mark.once


@pytest.mark.parametrize("count", [2, 3, 10, 200])
def test_mean_and_half_width_against_scipy(count):
    values = np.random.default_rng(count).gamma(2.0, size=(4, count))
    mean, half = plotting.mean_and_half_width(xr.DataArray(values, dims=("x", "seed")))
    np.testing.assert_allclose(mean, np.mean(values, axis=1), rtol=1e-12)
    error = scipy.stats.sem(values, axis=1)
    np.testing.assert_allclose(half, scipy.stats.t.ppf(0.975, count - 1) * error, rtol=1e-9)
    low, high = scipy.stats.t.interval(0.95, count - 1, loc=np.mean(values, axis=1), scale=error)
    np.testing.assert_allclose([mean - half, mean + half], [low, high], rtol=1e-9)
    assert np.all(np.abs(half / error - 1.96) > 0.01)  # a normal quantile would not pass


def test_mean_and_half_width_do_not_skip_nan():
    values = xr.DataArray([[1.0, 2.0, np.nan], [1.0, 2.0, 3.0]], dims=("x", "seed"))
    mean, half = plotting.mean_and_half_width(values)
    np.testing.assert_array_equal(np.isnan(mean), [True, False])
    np.testing.assert_array_equal(np.isnan(half), [True, False])
    mean, half = plotting.mean_and_half_width(values.isel(seed=[0]))
    np.testing.assert_array_equal(mean, 1.0)
    assert np.isnan(half).all()


def test_share_and_limits_against_scipy():
    for count, hits in ((1, 0), (1, 1), (40, 38), (40, 40)):
        values = xr.DataArray(np.arange(count) < hits, dims="seed").astype(float)
        share, low, high = plotting.share_and_limits(values)
        expected = scipy.stats.binomtest(hits, count).proportion_ci(0.95, method="exact")
        np.testing.assert_allclose([share, low, high], [hits / count, expected.low, expected.high], rtol=1e-9)
    values[3] = np.nan
    assert all(np.isnan(value) for value in plotting.share_and_limits(values))

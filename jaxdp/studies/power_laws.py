"""Exponents of power laws, fitted to means over seeds, with confidence intervals."""

from typing import Any

import numpy as np
import xarray as xr
from scipy.special import stdtrit


def power_law(values: xr.DataArray, x: str, over: str = "seed") -> xr.Dataset:
    """The exponent a of mean ~ x^a: the slope of least squares through (ln x, ln mean), with its 95% interval.

    The slope is a sum of weights times ln mean, so that seed s moves it by sum_x w(x) value(s, x) / mean(x) over the
    number of seeds (delta method). Its standard error is that of the mean of these sums, and the interval has Student's
    quantile: seeds are independent, values of one seed at several x need not be. It tells how far another set of seeds
    would move the slope, not whether the mean follows a power law.

    Args:
        values: at least two x; other dimensions are fitted one by one.
        x: dimension with a coordinate, positive and finite.
        over: the dimension of independent repetitions.

    Returns:
        `exponent`, `low` and `high`, without x and seeds. A mean that is not positive, or NaN, makes all three NaN; a
        single seed the last two.

    Raises:
        ValueError: if there are fewer than two values of x, or one is not positive and finite.

    >>> rounds = xr.DataArray([10.0, 100.0, 1000.0], dims="round")
    >>> values = (rounds**0.5 * xr.DataArray([1.0, 1.0, 1.0], dims="seed")).assign_coords(round=rounds)
    >>> round(power_law(values, "round").exponent.item(), 6)
    0.5
    """
    at = values[x].astype(float)
    if at.size < 2 or not bool(((at > 0) & np.isfinite(at)).all()):
        raise ValueError(f"{x} must have at least two values, positive and finite, got {at.values.tolist()}")
    centred = np.log(at) - np.log(at).mean()
    weights: Any = centred / (centred**2).sum()  # NumPy's stubs take functions of a DataArray for arrays
    mean = values.mean(over, skipna=False)
    mean = mean.where(mean > 0)
    exponent = (weights * np.log(mean)).sum(x, skipna=False)
    count = values.sizes[over]
    if count < 2:
        half = xr.full_like(exponent, np.nan)
    else:
        moves = (weights * values / mean).sum(x, skipna=False)
        half = stdtrit(count - 1, 0.975) * moves.std(over, ddof=1, skipna=False) / np.sqrt(count)
    return xr.Dataset({"exponent": exponent, "low": exponent - half, "high": exponent + half})

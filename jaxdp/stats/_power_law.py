"""Fits exponents of power functions to means over seeds, with confidence intervals."""

from typing import Any

import numpy as np
import xarray as xr

from jaxdp.stats.arrays import check_array, check_different, student_quantile
from jaxdp.validation import check_probability


def power_law(values: xr.DataArray, x: str, over: str = "seed", *, confidence: float = 0.95) -> xr.Dataset:
    """Fits the exponent a of mean ~ x^a by least squares, with a confidence interval.

    The exponent is the least-squares slope of ln mean against ln x. It is the sum over x of w(x) ln mean(x), with
    weights w that depend only on x. By the delta method, the slope's standard error is the standard error of the mean,
    over seeds s, of the sums over x of w(x) value(s, x) / mean(x). The interval is Student's t interval with this
    standard error. Seeds must be independent, but the values of one seed at several x may depend on each other. The
    interval is for the slope that infinitely many seeds would give. The function does not test whether the mean is a
    power of x.

    For Gaussian values with a standard deviation of a fifth of the mean, a 95% interval has a coverage of at least
    94.5% with 8 or more seeds. For skewed values with a standard deviation of 70% of the mean (products of two gamma
    variables, one of them constant along the curve of a seed), its coverage is 92.7% with 8 seeds, 93.2% with 20,
    94.3% with 40, and at least 94.5% with 100 or more seeds.

    Args:
        values: numbers with the dimensions `x` and `over`; each point of the other dimensions is fitted separately.
        x: a dimension with a coordinate of at least two different values, all positive and finite.
        over: the dimension of independent repetitions.
        confidence: confidence of each interval, in (0, 1).

    Returns:
        A Dataset without x and `over`: `exponent`, `low` and `high`. If a mean is NaN, infinite or not positive, all
        three are NaN. With a single seed, `low` and `high` are NaN.

    Raises:
        ValueError: if values lack a dimension; if x equals `over`, has fewer than two different values, or has a value
            that is not positive and finite; or if confidence is outside (0, 1).

    Examples:
        >>> rounds = xr.DataArray([10.0, 100.0, 1000.0], dims="round")
        >>> values = (rounds**0.5 * xr.DataArray([1.0, 1.0, 1.0], dims="seed")).assign_coords(round=rounds)
        >>> round(power_law(values, "round").exponent.item(), 6)
        0.5
    """
    values = check_array("values", values, x, over).astype(np.float64).compute()
    check_different("x", x, over)
    check_probability("confidence", confidence)
    labels = values[x]
    try:
        points = xr.full_like(labels, np.nan, float) if labels.dtype.kind in "mM" else labels.astype(float)
    except (TypeError, ValueError):
        points = xr.full_like(labels, np.nan, float)
    if len(np.unique(points)) < 2 or not bool(((points > 0) & np.isfinite(points)).all()):
        raise ValueError(
            f"{x} must have at least two different values, positive and finite, got {labels.values.tolist()}"
        )
    centred = np.log(points) - np.log(points).mean()
    weights: Any = centred / (centred**2).sum()  # by NumPy's stubs, functions of a DataArray are arrays
    mean = values.mean(over, skipna=False)
    mean = mean.where((mean > 0) & np.isfinite(mean))
    exponent = (weights * np.log(mean)).sum(x, skipna=False)
    count = values.sizes[over]
    if count < 2:
        half = xr.full_like(exponent, np.nan)
    else:
        terms = (weights * values / mean).sum(x, skipna=False)
        error = terms.std(over, ddof=1, skipna=False)
        half = student_quantile((1 + confidence) / 2, count) * error / np.sqrt(count)
    return xr.Dataset({"exponent": exponent, "low": exponent - half, "high": exponent + half})

"""What a figure shows of many seeds: a middle with its limits, and words for both."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from jaxdp.audit.intervals import clopper_pearson
from jaxdp.validation import check_choice

BANDS = ("t", "quantile", "share")


class Summary(NamedTuple):
    """A middle over seeds with its limits.

    Attributes:
        middle: mean, median or share.
        low: lower limit; NaN without a band.
        high: upper limit.
        marks: what the middle is, in words.
        spread: what the limits are; empty without a band.
    """

    middle: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray
    marks: str
    spread: str

    def select(self, point: dict[str, Any]) -> "Summary":
        """The summary at one value of some dimensions, given by position."""
        middle, low, high = (part.isel(point) for part in (self.middle, self.low, self.high))
        return Summary(middle, low, high, self.marks, self.spread)


def seed_count(num_seeds: int) -> str:
    """How text names a number of seeds.

    >>> seed_count(1), seed_count(20)
    ('1 seed', '20 seeds')
    """
    return "1 seed" if num_seeds == 1 else f"{num_seeds} seeds"


def mean_and_half_width(values: xr.DataArray, over: str = "seed") -> tuple[xr.DataArray, xr.DataArray]:
    """The mean over a dimension, and the half width of its 95% confidence interval by Student's t.

    The half width is t standard errors, where t is the 97.5% quantile of Student's distribution with count - 1 degrees
    of freedom: 12.7 for 2 values, 4.3 for 3, 1.97 for 200. A NaN is never skipped: both results are NaN with it.

    Args:
        values: at least one value along `over`.
        over: the dimension of independent repetitions.

    Returns:
        (mean, half width), without that dimension; the half width is NaN for a single value.

    >>> mean, half = mean_and_half_width(xr.DataArray([1.0, 2.0, 3.0], dims="seed"))
    >>> print(f"{mean.item():.3f} +- {half.item():.3f}")
    2.000 +- 2.484
    """
    count = values.sizes[over]
    mean = values.mean(over, skipna=False)
    if count < 2:
        return mean, xr.full_like(mean, np.nan)
    quantile = float(stdtrit(count - 1, 0.975))
    return mean, quantile * values.std(over, ddof=1, skipna=False) / np.sqrt(count)


def share_and_limits(hits: xr.DataArray, over: str = "seed") -> tuple[xr.DataArray, xr.DataArray, xr.DataArray]:
    """The share of hits along a dimension, and its 95% Clopper-Pearson confidence interval.

    Args:
        hits: 0 or 1, independent along `over`. A NaN is never skipped: all results are NaN with it.
        over: the dimension of independent repetitions.

    Returns:
        (share, lower limit, upper limit), in [0, 1], without that dimension.

    >>> share, low, high = share_and_limits(xr.DataArray([1.0, 1.0, 1.0, 0.0], dims="seed"))
    >>> print(f"{share.item():.2f} in [{low.item():.3f}, {high.item():.3f}]")
    0.75 in [0.194, 0.994]
    """
    total = hits.sum(over, skipna=False)
    low, high = (total.copy(data=limit) for limit in clopper_pearson(total.fillna(0).values, hits.sizes[over]))
    return total / hits.sizes[over], low.where(total.notnull()), high.where(total.notnull())


def summary(values: xr.DataArray, band: str | None, over: str = "seed") -> Summary:
    """A middle over seeds with its limits.

    Args:
        values: real numbers or booleans, with the dimension `over`.
        band: "t" (the mean and its 95% confidence interval by Student's t), "quantile" (the median and the central 95%
            of seeds), "share" (of values 0 or 1, with the 95% Clopper-Pearson interval) or None (the mean alone).
        over: the dimension of independent repetitions.

    Returns:
        The summary. A NaN is never skipped.

    Raises:
        ValueError: if `band` is unknown, or shares are asked for of values that are not 0 or 1.
    """
    if band is not None:
        check_choice("band", band, BANDS)
    values, seeds = values.astype(float), seed_count(values.sizes[over])
    if band == "quantile":
        low, middle, high = (values.quantile(q, over, skipna=False) for q in (0.025, 0.5, 0.975))
        return Summary(
            middle, low, high, f"median of {seeds}", "the central 95% of seeds (2.5% to 97.5% quantile), not an error"
        )
    if band == "share":
        wrong = values.values[~(np.isin(values, (0.0, 1.0)) | np.isnan(values))]
        if wrong.size:
            raise ValueError(f"values must be 0 or 1 where band is 'share', got {wrong[0]}")
        spread = "the 95% confidence interval of that share (Clopper-Pearson)"
        return Summary(*share_and_limits(values, over), f"share of {seeds}", spread)
    mean, half = mean_and_half_width(values, over)
    shown = band is not None and values.sizes[over] > 1
    half = half if shown else xr.full_like(half, np.nan)
    spread = "95% confidence interval of that mean (Student's\u00a0t)" if shown else ""
    return Summary(mean, mean - half, mean + half, f"mean of {seeds}", spread)

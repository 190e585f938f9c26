"""Summaries over seeds: a mean, median or proportion, its limits, and texts that explain these numbers."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr

from jaxdp.stats import mean_interval, share_interval
from jaxdp.validation import check_choice

BANDS = ("t", "quantile", "share")
NOT_FINITE = "a value was not finite for at least one seed"  # why a mark is missing


class Summary(NamedTuple):
    """An estimate from several seeds, such as a mean, median or proportion, with limits.

    Attributes:
        middle: the estimate.
        low: lower limit; NaN without a band.
        high: upper limit; NaN without a band.
        marks: meaning of `middle`, as text.
        spread: meaning of the limits, as text; empty without a band.
        missing: why `middle` may be NaN, as text.
    """

    middle: xr.DataArray
    low: xr.DataArray
    high: xr.DataArray
    marks: str
    spread: str
    missing: str = NOT_FINITE

    def select(self, point: dict[str, Any]) -> "Summary":
        """Returns the summary at the given index of each dimension in `point`."""
        middle, low, high = (part.isel(point) for part in (self.middle, self.low, self.high))
        return self._replace(middle=middle, low=low, high=high)


def seed_count(num_seeds: int) -> str:
    """Formats a number of seeds.

    Examples:
        >>> seed_count(1), seed_count(20)
        ('1 seed', '20 seeds')
    """
    return "1 seed" if num_seeds == 1 else f"{num_seeds} seeds"


def summary(values: xr.DataArray, band: str | None, over: str = "seed") -> Summary:
    """Computes a mean, median or proportion over seeds, and its limits.

    If the value of any seed is NaN, the estimate and its limits are NaN.

    Args:
        values: real numbers or booleans, with the dimension `over`.
        band: "t" (the mean and its 95% confidence interval by Student's t), "quantile" (the median and the central 95%
            of seeds), "share" (the proportion of ones and its 95% Clopper-Pearson interval) or None (the mean only).
            Limits are NaN for None, and for "t" with a single seed.
        over: the dimension of seeds.

    Raises:
        ValueError: if `band` is unknown, or "share" is requested for values other than 0, 1 and NaN.
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
            raise ValueError(f"values must be 0 or 1 if band is 'share', got {wrong[0]}")
        spread = "the 95% confidence interval of that share (Clopper-Pearson)"
        interval = share_interval(values, over)
        return Summary(interval.share, interval.low, interval.high, f"share of {seeds}", spread)
    interval = mean_interval(values, over)
    has_band = band is not None and values.sizes[over] > 1
    low, high = (limit if has_band else xr.full_like(limit, np.nan) for limit in (interval.low, interval.high))
    spread = "95% confidence interval of that mean (Student's\u00a0t)" if has_band else ""
    return Summary(interval["mean"], low, high, f"mean of {seeds}", spread)

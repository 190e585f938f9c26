"""Computes confidence intervals of means and proportions."""

import math
from collections.abc import Iterator

import numpy as np
import xarray as xr

from jaxdp.stats.arrays import check_array, means, student_quantile
from jaxdp.validation import INT64_MAX, check_choice, check_count, check_probability

METHODS = ("t", "bootstrap")
CELLS = 2**22  # maximum number of entries in an array of the bootstrap (32 MB)


def mean_interval(
    values: xr.DataArray,
    over: str = "seed",
    *,
    confidence: float = 0.95,
    method: str = "t",
    num_resamples: int = 1999,
    random_state: int = 0,
) -> xr.Dataset:
    """Computes the mean over independent repetitions, with a confidence interval for each point.

    "t" is Student's t interval. It is exact for any number of Gaussian values. For few values of a skewed distribution
    it is too narrow: for exponential values, the coverage of a 95% interval is 89% with 8 seeds and 92% with 20 seeds.

    "bootstrap" is for skewed values. It is the studentized bootstrap: quantiles of (mean* - mean) / error*, where mean*
    and error* are a resample's mean and standard error, replace the quantiles of Student's t distribution. Where the
    limit of Student's t interval is farther from the mean, this limit is used instead. The coverage of a 95% interval
    is at least 94.5% with 8 or more seeds for Gaussian and gamma values (shape 4, skewness 1), with 20 or more for
    exponential values (skewness 2), and with 100 or more for lognormal values with sigma = 1 (skewness 6). For 8
    Gaussian values the coverage is 96.4%, and the interval is wider than Student's t interval. Do not use the bootstrap
    for fewer than 8 seeds. Its limits are infinite if too many resamples consist of one repeated value, which happens
    with 2 or 3 seeds, or if most values are equal.

    Use `share_interval` for proportions of hits.

    Args:
        values: numbers that are independent along `over`.
        over: the dimension of independent repetitions.
        confidence: confidence of each interval, in (0, 1).
        method: "t" or "bootstrap".
        num_resamples: number of resamples of the bootstrap, at least 2 / (1 - confidence) - 1. All points use the same
            resamples.
        random_state: integer >= 0, the seed of the resamples; equal seeds give equal intervals.

    Returns:
        A Dataset of `mean`, `low` and `high`, float64, without `over`. Limits are NaN for a single repetition.

    Raises:
        ValueError: if values are not an array with the dimension `over`, or another argument is out of its range.

    Source:
        Efron & Tibshirani (1993), section 12.5, the bootstrap-t interval.

    Examples:
        >>> interval = mean_interval(xr.DataArray([1.0, 2.0, 3.0], dims="seed"))
        >>> print(f"{interval['mean']:.3f} in [{interval.low:.3f}, {interval.high:.3f}]")
        2.000 in [-0.484, 4.484]
    """
    check_array("values", values, over)
    check_probability("confidence", confidence)
    mean, error, count = means(values, over)
    half = student_quantile((1 + confidence) / 2, count) * error
    low, high = mean - half, mean + half
    if check_choice("method", method, METHODS) == "bootstrap":
        resamples = check_count("num_resamples", num_resamples)
        rank = int((resamples + 1) * (1 - confidence) / 2 + 1e-9)
        if rank < 1:
            fewest = math.ceil(2 / (1 - confidence) - 1 - 1e-6)
            raise ValueError(f"num_resamples must be >= {fewest}, got {num_resamples}")
        check_count("random_state", random_state, 0, maximum=INT64_MAX)
        if count > 1:
            points = values.astype(np.float64).transpose(..., over).values.reshape(-1, count)
            bounds = _bootstrap_quantiles(points, rank, resamples, random_state).reshape(2, *mean.shape)
            low, high = (np.fmin(low, mean - bounds[1] * error), np.fmax(high, mean - bounds[0] * error))
    return xr.Dataset({"mean": mean, "low": low, "high": high})


def share_interval(hits: xr.DataArray, over: str = "seed", *, confidence: float = 0.95) -> xr.Dataset:
    """Computes the proportion of hits among independent repetitions, with its Clopper-Pearson confidence interval.

    Args:
        hits: 0 or 1 (or False or True), independent along `over`. A NaN makes the result at its point NaN.
        over: the dimension of independent repetitions.
        confidence: confidence of each interval, in (0, 1): the interval contains the probability of a hit with at least
            this probability.

    Returns:
        A Dataset of the proportion `share` and the limits `low` and `high`, float64 in [0, 1], without `over`.

    Raises:
        ValueError: if hits have other values or lack the dimension `over`, or confidence is outside (0, 1).

    Examples:
        >>> interval = share_interval(xr.DataArray([1.0, 1.0, 1.0, 0.0], dims="seed"))
        >>> print(f"{interval.share:.2f} in [{interval.low:.3f}, {interval.high:.3f}]")
        0.75 in [0.194, 0.994]
    """
    from jaxdp.audit.intervals import clopper_pearson  # imported here because it imports all of jaxdp.audit

    check_array("hits", hits, over)
    total, is_known = count_hits(hits, over)
    low, high = (
        total.copy(data=limit) for limit in clopper_pearson(total.values, hits.sizes[over], confidence=confidence)
    )
    interval = xr.Dataset({"share": total / hits.sizes[over], "low": low, "high": high})
    return interval.where(is_known)


def count_hits(hits: xr.DataArray, over: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Returns the number of hits, and whether no value is NaN.

    Raises a ValueError if a value is not 0, 1 or NaN.
    """
    if not bool(hits.isin([0, 1]).where(hits.notnull(), True).all()):
        raise ValueError(
            f"{hits.name or 'hits'} must be 0 or 1, got values from {float(hits.min())} to {float(hits.max())}"
        )
    return hits.astype(np.float64).sum(over, skipna=True).compute(), hits.notnull().all(over).compute()


def _bootstrap_quantiles(points: np.ndarray, rank: int, resamples: int, random_state: int) -> np.ndarray:
    """Returns the rank-th smallest and largest (mean* - mean) / error* of all resamples, as [2, number of points]."""
    count = points.shape[1]
    step = max(1, CELLS // max(count, resamples))
    draws = list(_draws(count, resamples, random_state)) if count * resamples <= CELLS else None
    quantiles = np.empty((2, len(points)))
    for start in range(0, len(points), step):
        part = points[start : start + step]
        centred = part - part.mean(1, keepdims=True)
        squares = centred**2
        ratios, num_done = np.empty((len(part), resamples)), 0
        for times in draws or _draws(count, resamples, random_state):
            shifts = centred @ times.T / count
            spread = squares @ times.T / count - shifts**2
            # If all values of a resample are equal, its spread is 0 up to rounding, and its ratio is infinite.
            spread = np.where(spread > 1e-12 * squares.mean(1, keepdims=True), spread, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios[:, num_done : num_done + len(times)] = np.sqrt(count - 1) * shifts / np.sqrt(spread)
            num_done += len(times)
        ratios[np.isnan(ratios)] = 0.0
        ratios = np.partition(ratios, [rank - 1, resamples - rank], axis=1)
        quantiles[:, start : start + step] = ratios[:, rank - 1], ratios[:, resamples - rank]
    return quantiles


def _draws(count: int, resamples: int, random_state: int) -> Iterator[np.ndarray]:
    """Yields, for each block of resamples, how often each resample has each repetition, as [block, count] float64."""
    step = max(1, CELLS // count)
    for start in range(0, resamples, step):
        rng = np.random.default_rng([random_state, start])
        yield rng.multinomial(count, np.full(count, 1 / count), min(step, resamples - start)).astype(np.float64)

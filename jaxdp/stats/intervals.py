"""Confidence intervals of means, and of shares."""

from collections.abc import Iterator

import numpy as np
import xarray as xr

from jaxdp.stats.arrays import check_array, means, student_quantile
from jaxdp.validation import INT64_MAX, check_choice, check_count, check_probability

METHODS = ("t", "bootstrap")
CELLS = 2**22  # numbers in one array of the bootstrap: 32 MB


def mean_interval(
    values: xr.DataArray,
    over: str = "seed",
    *,
    confidence: float = 0.95,
    method: str = "t",
    num_resamples: int = 1999,
    random_state: int = 0,
) -> xr.Dataset:
    """Computes the mean over independent repetitions, and a confidence interval of each point's mean alone.

    "t" is Student's interval: exact for Gaussian values, however few; too narrow for few values of a skew distribution
    (for exponential ones a 95% interval covers 89% at 8 seeds and 92% at 20).

    "bootstrap" is for such values. It is the studentized bootstrap: quantiles of (mean* - mean) / error* over resamples
    of the seeds replace Student's. Where Student's interval reaches further, its limit is used. A 95% interval covers
    at least 94.5% from 8 seeds on for Gaussian and gamma values (shape 4, skewness 1), from 20 on for exponential ones
    (skewness 2), from 100 on for lognormal ones with sigma = 1 (skewness 6). For 8 Gaussian values it covers 96.4%, and
    is wider than Student's. Fewer than 8 seeds are too few for it. If too many resamples hold one value only, as for 2
    or 3 seeds, or values that rarely differ, its limits are infinite.

    Use `share_interval` for shares of hits.

    Args:
        values: numbers, independent along `over`.
        over: the dimension of independent repetitions.
        confidence: confidence of each interval, in (0, 1).
        method: "t" or "bootstrap".
        num_resamples: number of resamples of the bootstrap, at least 2 / (1 - confidence) - 1. All points share them.
        random_state: integer >= 0, the seed of the bootstrap's resamples: equal numbers, equal intervals.

    Returns:
        `mean`, `low` and `high`, float64, without `over`. Limits are NaN for a single repetition.

    Raises:
        ValueError: if values are not an array with such a dimension, or another argument is out of its range.

    Source:
        Efron & Tibshirani (1993), section 12.5, the bootstrap-t interval.

    Examples:
        >>> found = mean_interval(xr.DataArray([1.0, 2.0, 3.0], dims="seed"))
        >>> print(f"{found['mean']:.3f} in [{found.low:.3f}, {found.high:.3f}]")
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
            raise ValueError(f"num_resamples must be >= {2 / (1 - confidence) - 1:.0f}, got {num_resamples}")
        check_count("random_state", random_state, 0, maximum=INT64_MAX)
        if count > 1:
            points = values.astype(np.float64).transpose(..., over).values.reshape(-1, count)
            bounds = _bootstrap_quantiles(points, rank, resamples, random_state).reshape(2, *mean.shape)
            low, high = (np.fmin(low, mean - bounds[1] * error), np.fmax(high, mean - bounds[0] * error))
    return xr.Dataset({"mean": mean, "low": low, "high": high})


def share_interval(hits: xr.DataArray, over: str = "seed", *, confidence: float = 0.95) -> xr.Dataset:
    """Computes the share of hits among independent repetitions, with its Clopper-Pearson confidence interval.

    Args:
        hits: 0 or 1 (or False or True), independent along `over`. A NaN makes its point NaN.
        over: the dimension of independent repetitions.
        confidence: confidence of each interval, in (0, 1), a lower bound on its coverage of the probability of a hit.

    Returns:
        `share`, `low` and `high`, float64 in [0, 1], without `over`.

    Raises:
        ValueError: if hits are anything else, or confidence is outside (0, 1).

    Examples:
        >>> found = share_interval(xr.DataArray([1.0, 1.0, 1.0, 0.0], dims="seed"))
        >>> print(f"{found.share:.2f} in [{found.low:.3f}, {found.high:.3f}]")
        0.75 in [0.194, 0.994]
    """
    from jaxdp.audit.intervals import clopper_pearson  # imports all of jaxdp.audit

    check_array("hits", hits, over)
    total, is_known = count_hits(hits, over)
    low, high = (
        total.copy(data=limit) for limit in clopper_pearson(total.values, hits.sizes[over], confidence=confidence)
    )
    interval = xr.Dataset({"share": total / hits.sizes[over], "low": low, "high": high})
    return interval.where(is_known)


def count_hits(hits: xr.DataArray, over: str) -> tuple[xr.DataArray, xr.DataArray]:
    """Counts the hits, and returns where the count is known: a count over values with a NaN is not.

    Raises:
        ValueError: if a value is neither 0 nor 1 nor NaN.
    """
    if not bool(hits.isin([0, 1]).where(hits.notnull(), True).all()):
        raise ValueError(
            f"{hits.name or 'hits'} must be 0 or 1, got values from {float(hits.min())} to {float(hits.max())}"
        )
    return hits.astype(np.float64).sum(over, skipna=True).compute(), hits.notnull().all(over).compute()


def _bootstrap_quantiles(points: np.ndarray, rank: int, resamples: int, random_state: int) -> np.ndarray:
    """Returns bootstrap quantiles of (mean* - mean) / error*: [2, points], the rank-th smallest and largest."""
    count = points.shape[1]
    step = max(1, CELLS // max(count, resamples))
    draws = list(_draws(count, resamples, random_state)) if count * resamples <= CELLS else None
    quantiles = np.empty((2, len(points)))
    for start in range(0, len(points), step):
        part = points[start : start + step]
        centred = part - part.mean(1, keepdims=True)
        squares = centred**2
        ratios, done = np.empty((len(part), resamples)), 0
        for times in draws or _draws(count, resamples, random_state):
            moved = centred @ times.T / count
            spread = squares @ times.T / count - moved**2
            # A resample of one value only has no spread, up to rounding: its ratio is infinite.
            spread = np.where(spread > 1e-12 * squares.mean(1, keepdims=True), spread, 0.0)
            with np.errstate(divide="ignore", invalid="ignore"):
                ratios[:, done : done + len(times)] = np.sqrt(count - 1) * moved / np.sqrt(spread)
            done += len(times)
        ratios[np.isnan(ratios)] = 0.0
        ratios = np.partition(ratios, [rank - 1, resamples - rank], axis=1)
        quantiles[:, start : start + step] = ratios[:, rank - 1], ratios[:, resamples - rank]
    return quantiles


def _draws(count: int, resamples: int, random_state: int) -> Iterator[np.ndarray]:
    """Yields how often each repetition is drawn, for blocks of resamples: [block, count] float64 each."""
    step = max(1, CELLS // count)
    for start in range(0, resamples, step):
        rng = np.random.default_rng([random_state, start])
        yield rng.multinomial(count, np.full(count, 1 / count), min(step, resamples - start)).astype(np.float64)

"""Finds the smallest epsilon of a grid down to which tests show that a metric reaches a required value."""

import warnings

import numpy as np
import xarray as xr

from jaxdp.stats._seeds_needed import seeds_needed
from jaxdp.stats.arrays import check_array, check_different, check_distinct_numbers, means, student_quantile
from jaxdp.stats.intervals import count_hits
from jaxdp.validation import check_choice, check_number, check_probability

METHODS = ("t", "share")


def smallest_epsilon(
    metric: xr.DataArray,
    at_most: float | None = None,
    *,
    at_least: float | None = None,
    along: str = "epsilon",
    over: str = "seed",
    confidence: float = 0.95,
    method: str | None = None,
) -> xr.DataArray:
    """Returns the smallest epsilon of the grid down to which tests show that the mean satisfies a bound.

    The bound is `at_most` or `at_least`. Epsilons are tested from the largest down, until the first test fails. The
    result is the last epsilon that passed. Tests in this fixed order need no correction. With `at_most`, the true mean
    is at most `at_most` at the returned epsilon and at all larger epsilons of the grid, with probability at least
    `confidence`, even if the mean does not decrease with epsilon. The probability is for each point of the other
    dimensions separately, not for all points together. The tests show nothing about epsilons between grid points.
    Smaller epsilons may also be sufficient, and tests with more seeds may show this.

    Each test is one-sided: it compares a confidence limit of the mean with the bound. "t" uses a limit from Student's t
    distribution, which is exact for Gaussian values and nearly exact for skewed values with many seeds. With few seeds
    and a long upper tail, "t" accepts a mean above `at_most` with a probability larger than 1 - confidence. "share"
    uses the Clopper-Pearson limit, which is valid for values 0 or 1 with any number of seeds.

    Args:
        metric: numbers with the dimensions `along` and `over`; seeds are independent.
        at_most: upper bound for the mean. Exactly one of `at_most` and `at_least` must be given.
        at_least: lower bound for the mean.
        along: the dimension with epsilons as its coordinate, in any order; infinity is the largest epsilon.
        over: the dimension of independent repetitions.
        confidence: lower bound, in (0, 1), on the probability of a correct conclusion.
        method: "t" or "share". None chooses "share" if all values of metric are 0 or 1 and the bound is in [0, 1], and
            otherwise "t".

    Returns:
        An array of epsilons, float64, without `along` and `over`. An entry is NaN if the test fails at the largest
        epsilon. It is infinity if the test at epsilon = infinity (the non-private algorithm) passes and the next test,
        if there is one, fails. The test at an epsilon with a NaN fails.

    Warns:
        RuntimeWarning: if no values of the metric could pass a test with this number of seeds. "t" needs two seeds; for
            "share", see `seeds_needed`.

    Raises:
        ValueError: if not exactly one of `at_most` and `at_least` is given, metric lacks a dimension, epsilons have
            duplicates, "share" is given for values other than 0, 1 and NaN, or another argument is out of its range.

    Source:
        Maurer, Hothorn & Lehmacher (1995): tests in a fixed order need no correction.

    Examples:
        >>> epsilon = xr.DataArray([0.1, 1.0, 10.0], dims="epsilon")
        >>> error = (1 / epsilon + xr.DataArray([0.0, 0.1, 0.2], dims="seed")).assign_coords(epsilon=epsilon)
        >>> smallest_epsilon(error, at_most=2.0).item()
        1.0
    """
    check_array("metric", metric, along, over)
    check_different("along", along, over)
    check_probability("confidence", confidence)
    if at_most is not None and at_least is None:
        bound = check_number("at_most", at_most)
    elif at_least is not None and at_most is None:
        bound = check_number("at_least", at_least)
    else:
        raise ValueError(
            f"exactly one of at_most and at_least must be given, got at_most={at_most} and at_least={at_least}"
        )
    epsilons = check_distinct_numbers(metric, along)
    if method is None:
        method = "share" if 0 <= bound <= 1 and bool(metric.isin([0, 1]).all()) else "t"
    needed = _fewest_seeds(check_choice("method", method, METHODS), bound, at_most is None, confidence)
    if metric.sizes[over] < needed:
        advice = f"at least {needed} are needed" if np.isfinite(needed) else "no number of repetitions can show it"
        warnings.warn(
            f"{over} has too few repetitions, {metric.sizes[over]}, to show a mean of at "
            f"{'least' if at_most is None else 'most'} {bound:g} with {confidence:g} confidence: {advice}",
            RuntimeWarning,
            stacklevel=2,
        )
    if method == "share":
        low, high = _limits_of_share(metric, over, 1 - confidence)
    else:
        mean, error, count = means(metric, over)
        margin = student_quantile(confidence, count) * error
        low, high = mean - margin, mean + margin
    is_shown = low >= bound if at_most is None else high <= bound
    descending = np.argsort(-epsilons)
    # Number of tests before the first failure. A limit of NaN fails.
    num_passed = is_shown.isel({along: descending}).cumprod(along).sum(along)
    return num_passed.copy(data=np.append(np.nan, epsilons[descending])[num_passed.values]).rename(f"smallest_{along}")


def _fewest_seeds(method: str, bound: float, is_at_least: bool, confidence: float) -> float:
    """Returns the smallest number of seeds with which a test can pass; infinity if no number of seeds is enough."""
    if method == "t":
        return 2
    share = bound if is_at_least else 1 - bound  # of hits or of misses; both need the same number of seeds
    return 1 if share <= 0 else np.inf if share >= 1 else seeds_needed(share, confidence=confidence)


def _limits_of_share(hits: xr.DataArray, over: str, error: float) -> tuple[xr.DataArray, xr.DataArray]:
    """Returns lower and upper limits of the proportion of hits; each fails with probability <= `error`.

    The limits are NaN if a hit is NaN.
    """
    from jaxdp.audit.intervals import lower_limit, upper_limit  # imported here because it imports all of jaxdp.audit

    total, known = count_hits(hits, over)
    limits = (bound(total.values, hits.sizes[over], error) for bound in (lower_limit, upper_limit))
    low, high = (total.copy(data=limit).where(known) for limit in limits)
    return low, high

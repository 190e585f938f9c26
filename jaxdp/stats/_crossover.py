"""Finds the crossings of the means of two paired curves."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from jaxdp.stats.arrays import check_array, check_different, check_distinct_numbers, student_quantile
from jaxdp.validation import check_choice, check_probability

SCALES = ("log", "linear")


def crossover(
    a: xr.DataArray,
    b: xr.DataArray,
    along: str = "epsilon",
    *,
    over: str = "seed",
    confidence: float = 0.95,
    scale: str = "log",
) -> xr.Dataset:
    """Finds where the means of two curves with the same seeds cross, with a confidence interval.

    Between grid points, each seed's difference a - b is interpolated linearly in ln x or in x (`scale`). A crossing is
    an x where the mean difference changes its sign. The confidence interval spans every x at which Student's t interval
    for the mean of the interpolated differences contains 0 (test inversion, solved exactly as in Fieller's theorem).
    Take any x at which the interpolated true means are equal. If the differences are Gaussian, the interval contains
    this x with probability at least `confidence`. If the true curves bend between grid points, use a finer grid.

    Args:
        a: numbers with the dimensions `along` and `over`. Each point of the other dimensions is treated separately.
        b: numbers with the same dimensions and labels as `a`.
        along: the dimension with the coordinate x, which has at least two finite values in any order. Points at
            infinity are ignored.
        over: the dimension of independent repetitions. In each repetition, a and b were measured in the same simulated
            world.
        confidence: confidence of the interval, in (0, 1).
        scale: scale of x for the linear interpolation: "log", for x > 0, or "linear".

    Returns:
        A Dataset without the dimensions `along` and `over`: `estimate`, the crossing at the smallest x; `crossings`,
        the number of crossings; `low` and `high`, the ends of the confidence interval. If there are several crossings,
        the interval spans all of them.

        * If the mean difference does not change its sign, `estimate` is NaN. `low` and `high` still span every x that
          the test does not reject; they are NaN if the test rejects every x.
        * If the test does not reject the first grid point, the curves may cross below this point, so `low` is the end
          of the scale: 0 for "log", -infinity for "linear". If the test does not reject the last grid point, `high` is
          infinity.
        * If a curve has a NaN or an infinite number at a finite x, all four results are NaN. With a single seed, `low`
          and `high` are NaN.

    Raises:
        ValueError: if a or b lacks a dimension; if their labels differ; if a value of x is repeated or, with the scale
            "log", is not > 0; or if another argument is out of its range.

    Source:
        Fieller (1954), test inversion for a ratio of means.

    Examples:
        >>> errors = [[9.0, 9.5, 10.0], [4.0, 5.0, 4.5], [2.0, 2.0, 2.2]]
        >>> local = xr.DataArray(errors, {"epsilon": [0.1, 1.0, 10.0]}, ("epsilon", "seed"))
        >>> crossing = crossover(local, xr.full_like(local, 4.0))
        >>> print(f"{crossing.estimate:.2f} in [{crossing.low:.2f}, {crossing.high:.2f}]")
        1.61 in [0.74, 3.01]
    """
    for name, values in (("a", a), ("b", b)):
        check_array(name, values, along, over)
        check_different("along", along, over)
        check_distinct_numbers(values, along)
    check_probability("confidence", confidence)
    is_log = check_choice("scale", scale, SCALES) == "log"
    try:
        first, second = xr.align(a, b, join="exact")
    except ValueError as error:
        raise ValueError(
            f"a and b must have the same labels and sizes, got {dict(a.sizes)} and {dict(b.sizes)}"
        ) from error
    difference = (first.astype(np.float64) - second.astype(np.float64)).sortby(along)
    difference = difference.isel({along: np.isfinite(difference[along].values)}).transpose(..., along, over)
    x = difference[along].values.astype(np.float64)
    if len(x) < 2 or (is_log and not (x > 0).all()):
        rule = "at least two finite values" + (", all > 0 (or scale='linear')" if is_log else "")
        raise ValueError(f"{along} must have {rule}, got {a[along].values.tolist()}")
    difference = difference.where(np.isfinite(difference))
    crossings = _find_crossings(difference.values, student_quantile((1 + confidence) / 2, difference.sizes[over]))
    positions, template = np.arange(len(x)), difference.isel({along: 0, over: 0}, drop=True)

    def x_at(position: np.ndarray) -> np.ndarray:
        return np.exp(np.interp(position, positions, np.log(x))) if is_log else np.interp(position, positions, x)

    low = np.where(crossings.low == 0, 0.0 if is_log else -np.inf, x_at(crossings.low))
    high = np.where(crossings.high == positions[-1], np.inf, x_at(crossings.high))
    parts = {
        "estimate": x_at(crossings.estimate),
        "low": low,
        "high": high,
        "crossings": crossings.crossings,
    }
    return xr.Dataset({name: template.copy(data=part) for name, part in parts.items()})


class _Crossings(NamedTuple):
    """Crossings of two curves, as positions on the grid of points.

    Position 0 is the first grid point, and 0.5 is halfway to the second grid point. All arrays are [...] float64.

    Attributes:
        estimate: position of the first crossing; NaN if there is none.
        low: position of the lower end of the confidence interval; NaN if there is no interval.
        high: position of the upper end of the confidence interval; NaN if there is no interval.
        crossings: number of crossings; NaN if a curve has NaN.
    """

    estimate: np.ndarray
    low: np.ndarray
    high: np.ndarray
    crossings: np.ndarray


def _find_crossings(values: np.ndarray, quantile: float) -> _Crossings:
    """Finds the zero crossings of the means over seeds. `values` has the shape [..., grid points, seeds].

    `quantile` is the quantile of Student's t distribution.
    """
    mean, count = values.mean(-1), values.shape[-1]
    centred = values - mean[..., None]
    factor = quantile**2 / (count * max(count - 1, 1))
    margins = factor * (centred**2).sum(-1)  # squared half widths of Student's t intervals
    joint = factor * (centred[..., :-1, :] * centred[..., 1:, :]).sum(-1)
    start, step = mean[..., :-1], np.diff(mean)
    start_margin, step_margin = margins[..., :-1], margins[..., :-1] + margins[..., 1:] - 2 * joint
    # At the fraction w of a step, Student's t interval contains 0 where square w^2 + 2 half w + constant <= 0.
    square = step**2 - step_margin
    half = start * step - (joint - start_margin)
    constant = start**2 - start_margin
    ends = mean**2 <= margins
    with np.errstate(divide="ignore", invalid="ignore"):
        numerator = -(half + np.copysign(np.sqrt(half**2 - square * constant), half))  # avoids cancellation
        roots = np.stack([numerator / square, constant / numerator, -start / step], -1)
    signs = np.sign(mean)
    for point in range(1, signs.shape[-1]):  # a curve that touches zero without crossing keeps its sign
        signs[..., point] = np.where(signs[..., point] == 0, signs[..., point - 1], signs[..., point])
    crosses = signs[..., :-1] * signs[..., 1:] < 0
    between = (roots >= 0) & (roots <= 1)
    between[..., 2] = crosses  # rounding must not lose the estimate
    index = np.arange(mean.shape[-1])
    points = np.where(between, index[:-1, None] + roots, np.nan).reshape(*mean.shape[:-1], -1)
    points = np.concatenate([points, np.where(ends, index, np.nan)], -1)
    crossing = np.where(crosses, index[:-1] + roots[..., 2], np.inf).min(-1)
    estimate = np.where(np.isfinite(crossing), crossing, np.nan)
    low, high = np.fmin.reduce(points, -1), np.fmax.reduce(points, -1)
    is_known = ~np.isnan(mean).any(-1)
    has_interval = is_known & (count > 1)
    return _Crossings(
        np.where(is_known, estimate, np.nan),
        np.where(has_interval, low, np.nan),
        np.where(has_interval, high, np.nan),
        np.where(is_known, crosses.sum(-1), np.nan),
    )

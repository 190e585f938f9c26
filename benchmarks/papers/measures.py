"""Intervals from datasets, exact distributions and audits: the numbers in rows of a reproduction."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import xarray as xr

from benchmarks.papers.rows import Interval, Size
from jaxdp.stats import mean_interval, power_law, share_interval


def mean(values: xr.DataArray) -> Interval:
    """Returns the mean over seeds, of one point."""
    found = mean_interval(values)
    return Interval(*(float(found[name]) for name in ("mean", "low", "high")))


def difference(one: xr.DataArray, other: xr.DataArray) -> Interval:
    """Returns the mean of one less the other, seed by seed."""
    return mean(one - other)


def relative(one: xr.DataArray, other: xr.DataArray) -> Interval:
    """Returns the mean of one less the other, seed by seed, over the mean of the other."""
    scale = float(other.mean())
    return Interval(*(each / scale for each in mean(one - other)))


def mean_ratio(one: xr.DataArray, other: xr.DataArray) -> Interval:
    """Returns the ratio of two means over seeds, by the delta method: seed by seed, one - ratio other has mean 0."""
    ratio, scale = float(one.mean()) / float(other.mean()), float(other.mean())
    spread = mean(one - ratio * other)
    return Interval(ratio, ratio + spread.low / scale, ratio + spread.high / scale)


def exponent(values: xr.DataArray, x: str) -> Interval:
    """Returns the exponent of the mean over seeds along x."""
    found = power_law(values, x)
    return Interval(*(float(found[name]) for name in ("exponent", "low", "high")))


def share(hits: xr.DataArray | Iterable[Any]) -> Interval:
    """Returns the share of hits among seeds, with its Clopper-Pearson interval."""
    if not isinstance(hits, xr.DataArray):
        hits = xr.DataArray(np.asarray(list(hits)), dims="seed")
    found = share_interval(hits.astype(float))
    return Interval(*(float(found[name]) for name in ("share", "low", "high")))


def largest(found: Iterable[Interval]) -> Interval:
    """Returns the interval with the largest upper limit: if it is at most 1, all are."""
    return max(found, key=lambda each: (each.high, each.value))


def smallest(found: Iterable[Interval]) -> Interval:
    """Returns the interval with the smallest lower limit."""
    return min(found, key=lambda each: (each.low, each.value))


def worst_over(ratio: xr.DataArray) -> Interval:
    """Returns the largest mean over seeds of a ratio to a bound, over all other dimensions."""
    points = ratio.stack(point=[name for name in ratio.dims if name != "seed"])
    return largest(mean(points.isel(point=place)) for place in range(points.sizes["point"]))


def lower_bound(value: float) -> Interval:
    """Returns a number with 95% confidence from below alone, such as an audit's."""
    return Interval(value, value, np.inf)


def upper_bound(value: float) -> Interval:
    """Returns a number with only an upper bound: proved, where the truth may be better."""
    return Interval(value, -np.inf, value)


def scheduled(simulate: Callable[..., xr.Dataset], size: Size, num_seeds: int, **grid: Any) -> xr.Dataset:
    """Runs a study for its dataset at this size."""
    return simulate(num_seeds=num_seeds, key=size.key, **grid)

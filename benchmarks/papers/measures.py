"""Intervals from datasets, exact distributions and audits: what rows of a reproduction are made of."""

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np
import xarray as xr

from benchmarks.papers.rows import Interval, Size
from jaxdp.stats import mean_interval, power_law, share_interval


def mean(values: xr.DataArray) -> Interval:
    """The mean over seeds, of one point."""
    found = mean_interval(values)
    return Interval(*(float(found[name]) for name in ("mean", "low", "high")))


def difference(one: xr.DataArray, other: xr.DataArray) -> Interval:
    """The mean of one less the other, seed by seed."""
    return mean(one - other)


def relative(one: xr.DataArray, other: xr.DataArray) -> Interval:
    """The mean of one less the other, seed by seed, over the mean of the other."""
    scale = float(other.mean())
    return Interval(*(each / scale for each in mean(one - other)))


def mean_ratio(one: xr.DataArray, other: xr.DataArray) -> Interval:
    """The ratio of two means over seeds, by the delta method: seed by seed, one - ratio other has mean 0."""
    ratio, scale = float(one.mean()) / float(other.mean()), float(other.mean())
    spread = mean(one - ratio * other)
    return Interval(ratio, ratio + spread.low / scale, ratio + spread.high / scale)


def exponent(values: xr.DataArray, x: str) -> Interval:
    """The exponent of the mean over seeds along x."""
    found = power_law(values, x)
    return Interval(*(float(found[name]) for name in ("exponent", "low", "high")))


def share(hits: xr.DataArray | Iterable[Any]) -> Interval:
    """The share of hits among seeds, with its Clopper-Pearson interval."""
    if not isinstance(hits, xr.DataArray):
        hits = xr.DataArray(np.asarray(list(hits)), dims="seed")
    found = share_interval(hits.astype(float))
    return Interval(*(float(found[name]) for name in ("share", "low", "high")))


def largest(found: Iterable[Interval]) -> Interval:
    """The one whose upper limit is the largest: what is at most 1 there, is so everywhere."""
    return max(found, key=lambda each: (each.high, each.value))


def smallest(found: Iterable[Interval]) -> Interval:
    """The one whose lower limit is the smallest."""
    return min(found, key=lambda each: (each.low, each.value))


def worst_over(ratio: xr.DataArray) -> Interval:
    """The largest mean over seeds of a ratio to a bound, over all other dimensions."""
    points = ratio.stack(point=[name for name in ratio.dims if name != "seed"])
    return largest(mean(points.isel(point=place)) for place in range(points.sizes["point"]))


def lower_bound(value: float) -> Interval:
    """A number of which 95% confidence is known from below alone, as an audit's."""
    return Interval(value, value, np.inf)


def upper_bound(value: float) -> Interval:
    """A number of which nothing but an upper bound is known: what can be proved, where truth may be better."""
    return Interval(value, -np.inf, value)


def scheduled(simulate: Callable[..., xr.Dataset], size: Size, num_seeds: int, **grid: Any) -> xr.Dataset:
    """A study's dataset at this size."""
    return simulate(num_seeds=num_seeds, key=size.key, **grid)

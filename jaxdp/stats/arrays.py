"""Checks the arrays that are passed to functions of `jaxdp.stats`, and computes means of arrays."""

from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from scipy.special import stdtrit

from jaxdp.validation import check_coordinates


class Means(NamedTuple):
    """Computed means over independent repetitions, in memory.

    Attributes:
        mean: float64; NaN if a value is NaN.
        error: float64 >= 0, the standard error of the mean; NaN for a single repetition or if a value is not finite.
        repetitions: number of repetitions.
    """

    mean: xr.DataArray
    error: xr.DataArray
    repetitions: int


def check_array(name: str, values: Any, *dims: str) -> xr.DataArray:
    """Returns values; checks that they are a DataArray of real numbers with at least one value along each of `dims`.

    Raises:
        ValueError: if values fail this check, or if a coordinate has the name of a result.
    """
    if isinstance(values, xr.Dataset):
        raise ValueError(f"{name} must be one variable of the Dataset: {', '.join(map(str, values.data_vars))}")
    if not isinstance(values, xr.DataArray):
        raise ValueError(f"{name} must be an xarray DataArray, got {type(values).__name__}")
    if values.dtype.kind not in "biuf":
        raise ValueError(f"{name} must be real numbers, got dtype {values.dtype}")
    check_coordinates(f"coordinates of {name}", {*values.coords, *values.dims})
    for dim in dims:
        if values.sizes.get(dim, 0) < 1:
            sizes = ", ".join(f"{axis}: {size}" for axis, size in values.sizes.items())
            raise ValueError(f"{name} must have at least one value along {dim!r}, got ({sizes})")
    return values


def check_different(name: str, along: str, over: str) -> None:
    """Raises a ValueError if the argument `name` and the argument over are the same dimension."""
    if along == over:
        raise ValueError(f"{name} and over must be different dimensions, got {along!r} for both")


def check_distinct_labels(values: xr.DataArray, along: str) -> np.ndarray:
    """Returns the labels of a dimension; raises a ValueError if a label is repeated."""
    labels = values[along].values
    if len(set(labels.tolist())) < len(labels):
        raise ValueError(f"{along} must have different labels, got {labels.tolist()}")
    return labels


def check_distinct_numbers(values: xr.DataArray, along: str) -> np.ndarray:
    """Returns the coordinate of a dimension as float64; checks that its numbers are distinct and that none is NaN."""
    if along not in values.coords or values[along].dtype.kind not in "iuf":
        got = values[along].values.tolist() if along in values.coords else "none"
        raise ValueError(f"{along} must have numbers as coordinate, got {got}")
    numbers = values[along].values.astype(np.float64)
    if np.isnan(numbers).any() or len(np.unique(numbers)) < len(numbers):
        raise ValueError(f"{along} must have numbers as coordinate, all different and none NaN, got {numbers.tolist()}")
    return numbers


def means(values: xr.DataArray, over: str) -> Means:
    """Computes means over a dimension and their standard errors; processes lazy arrays chunk by chunk."""
    wide, count = values.astype(np.float64), values.sizes[over]
    mean = wide.mean(over, skipna=False)
    if count < 2:
        return Means(mean.compute(), xr.full_like(mean, np.nan).compute(), count)
    with np.errstate(invalid="ignore"):  # the standard deviation of infinite values is NaN
        error = wide.std(over, ddof=1, skipna=False) / np.sqrt(count)
        both = xr.Dataset({"_mean": mean, "_error": error}).compute()  # underscores avoid clashes with coordinates
    return Means(both["_mean"].rename(None), both["_error"].rename(None), count)


def student_quantile(probability: float, count: int) -> float:
    """Returns the quantile of Student's t distribution for the mean of `count` values; NaN for a single value."""
    return float(stdtrit(count - 1, probability)) if count > 1 else float("nan")

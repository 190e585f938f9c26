"""Checks the array arguments of bounds. Every check raises a ValueError for NaN."""

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.validation import refuse_masked


def above(name: str, values: ArrayLike, bound: float) -> np.ndarray:
    """Checks that all values are > bound, and returns them as float64; infinity is accepted.

    Raises:
        ValueError: if a value is not > bound, or values are not numbers. In the first case, the message contains the
            first wrong value and, for an array, its index.
    """
    return _check_rule(name, values, lambda array: array > bound, f"> {bound:g}")


def at_least(name: str, values: ArrayLike, bound: float) -> np.ndarray:
    """Checks that all values are finite and >= bound, and returns them as float64; raises ValueError otherwise."""
    return _check_rule(name, values, lambda array: (array >= bound) & (array < np.inf), f"finite and >= {bound:g}")


def between(name: str, values: ArrayLike, low: float, high: float) -> np.ndarray:
    """Checks that all values are in (low, high), and returns them as float64; raises ValueError otherwise."""
    return _check_rule(name, values, lambda array: (array > low) & (array < high), f"in ({low:g}, {high:g})")


def positive(name: str, values: ArrayLike) -> np.ndarray:
    """Checks that all values are finite and > 0, and returns them as float64; raises ValueError otherwise."""
    return between(name, values, 0, np.inf)


def _check_rule(name: str, values: ArrayLike, rule: Callable[[np.ndarray], np.ndarray], text: str) -> np.ndarray:
    refuse_masked(name, values)
    try:
        array = np.asarray(values)
    except ValueError as error:  # rows of different lengths
        raise ValueError(f"{name} must be an array of numbers, got {values!r}") from error
    if not np.issubdtype(array.dtype, np.integer) and not np.issubdtype(array.dtype, np.floating):
        raise ValueError(f"{name} must be numbers, got {values!r}")
    array = array.astype(np.float64)
    bad = np.argwhere(~rule(array))
    if len(bad):
        index = tuple(bad[0].tolist())
        raise ValueError(f"{name} must be {text}, got {array[index]}" + (f" at index {index}" if index else ""))
    return array

"""Checks and casts mean losses, for adversaries."""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import default_float
from jaxdp.validation import check_within


def means_vector(name: str, values: ArrayLike) -> np.ndarray:
    """Checks the mean losses of at least two experts, and returns a copy of them as a vector.

    Raises:
        ValueError: if `values` are not a vector of at least two numbers in [0, 1].
    """
    array = check_within(name, values, 0.0, 1.0)
    if array.ndim != 1 or len(array) < 2:
        raise ValueError(f"{name} must be a vector of at least two experts, got shape {array.shape}")
    return array.copy()  # the caller's array may change before a run reads it


def cast(values: np.ndarray) -> np.ndarray:
    """Casts numbers to the float dtype of `Params` leaves."""
    return values.astype(default_float())

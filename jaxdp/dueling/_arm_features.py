"""Feature vectors of arms in the unit ball, on which utilities depend linearly."""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import default_float
from jaxdp.validation import check_finite, check_num_arms

ROUNDING = 1e-6  # largest excess of a norm over 1 that counts as rounding


def check_features(features: ArrayLike) -> np.ndarray:
    """Checks that features are distinct points of the unit ball; returns them as [num_arms, dim] float64.

    Raises:
        ValueError: if features are not a matrix of finite numbers with at least two rows and one column; if there are
            more columns than rows; if a row has norm above 1 + 1e-6, or two rows are equal in JAX's default float type.
    """
    array = check_finite("features", features).astype(np.float64)
    if array.ndim != 2 or array.shape[1] < 1:
        raise ValueError(f"features must be [num_arms, dim] with dim >= 1, got shape {array.shape}")
    check_num_arms(len(array))
    num_arms, dim = array.shape
    if dim > num_arms:
        raise ValueError(
            f"features must have at most as many columns as rows, got dim {dim} for {num_arms} arms; use "
            "coordinates of the space that the arms span"
        )
    norms = np.sqrt(np.sum(array**2, axis=1))
    longest = int(norms.argmax())
    if not norms[longest] <= 1 + ROUNDING:
        raise ValueError(f"features must have rows of norm at most 1, got {norms[longest]:.6g} of arm {longest}")
    _, first, group = np.unique(array.astype(default_float()), axis=0, return_index=True, return_inverse=True)
    if len(first) < num_arms:
        earlier = first[group.ravel()]
        (later,) = np.nonzero(earlier != np.arange(num_arms))
        raise ValueError(
            f"features must have different rows, got the same row for arms {earlier[later[0]]} and {later[0]}"
        )
    return array

"""Checks of what every attack takes."""

from typing import Any

import jax
import numpy as np


def check_alike(name: str, first: Any, second: Any) -> None:
    """Checks that two inputs have the same structure, shapes and dtypes.

    Raises:
        ValueError: if not.
    """
    shapes = [jax.tree.map(lambda x: (np.shape(x), np.asarray(x).dtype), data) for data in (first, second)]
    if jax.tree.structure(first) != jax.tree.structure(second) or shapes[0] != shapes[1]:
        raise ValueError(f"{name} must have the same structure, shapes and dtypes, got {shapes[0]} and {shapes[1]}")

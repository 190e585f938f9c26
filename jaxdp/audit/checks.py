"""Checks of what every attack takes."""

from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.core import Guarantee

NATIVE_DELTA = 0.01  # where a zCDP or Gaussian claim is tested; it implies an epsilon at every delta


class Budget(NamedTuple):
    """What an attack holds a claim to."""

    epsilon: float
    delta: float


def budget(claim: Guarantee) -> Budget:
    """What an attack on a claim must exceed: its own (epsilon, delta), or what its rho or mu implies at one delta."""
    delta = NATIVE_DELTA if claim.kind in ("zcdp", "gaussian") else claim.delta
    return Budget(claim.epsilon_at(delta), delta)


def check_alike(name: str, first: Any, second: Any) -> None:
    """Checks that two inputs have the same structure, shapes and dtypes.

    Raises:
        ValueError: if not.
    """
    shapes = [jax.tree.map(lambda x: (np.shape(x), np.asarray(x).dtype), data) for data in (first, second)]
    if jax.tree.structure(first) != jax.tree.structure(second) or shapes[0] != shapes[1]:
        raise ValueError(f"{name} must have the same structure, shapes and dtypes, got {shapes[0]} and {shapes[1]}")

"""Checks an attack's inputs, and returns the number that a claim states."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.core import Guarantee

NATIVE_DELTA = 0.01  # delta at which a zCDP or Gaussian claim is converted to epsilon


class Budget(NamedTuple):
    """A claim as (epsilon, delta)."""

    epsilon: float
    delta: float


class Native(NamedTuple):
    """The number that a claim states.

    Attributes:
        currency: name of the number: "rho" for a zCDP claim, "mu" for a Gaussian claim, else "epsilon".
        claimed: the number, > 0; infinity if nothing is claimed.
        delta: the claimed delta; 0 for pure, zCDP and Gaussian claims.
    """

    currency: str
    claimed: float
    delta: float


def native(claim: Guarantee) -> Native:
    """Returns the name of a claim's number, the number (a larger lower bound refutes the claim), and the delta."""
    if claim.rho is not None:
        return Native("rho", claim.rho, 0.0)
    if claim.mu is not None:
        return Native("mu", claim.mu, 0.0)
    return Native("epsilon", claim.epsilon if claim.is_private else math.inf, claim.delta)


def budget(claim: Guarantee) -> Budget:
    """Returns a claim's (epsilon, delta); a zCDP or Gaussian claim is converted at delta = NATIVE_DELTA."""
    delta = NATIVE_DELTA if claim.kind in ("zcdp", "gaussian") else claim.delta
    return Budget(claim.epsilon_at(delta), delta)


def differ(first: Any, second: Any) -> Any:
    """Returns where two arrays differ, as a bool array of their broadcast shape; NaN equals NaN."""
    return (first != second) & ((first == first) | (second == second))


def check_alike(name: str, first: Any, second: Any) -> None:
    """Raises ValueError unless two inputs have the same structure, shapes and dtypes."""
    shapes = [jax.tree.map(lambda x: (np.shape(x), np.asarray(x).dtype), data) for data in (first, second)]
    if jax.tree.structure(first) != jax.tree.structure(second) or shapes[0] != shapes[1]:
        raise ValueError(f"{name} must have the same structure, shapes and dtypes, got {shapes[0]} and {shapes[1]}")

"""Checks of the inputs of every attack, and a claim's budget in its own currency or in epsilon."""

import math
from typing import Any, NamedTuple

import jax
import numpy as np

from jaxdp.core import Guarantee

NATIVE_DELTA = 0.01  # at which a zCDP or Gaussian claim is converted to epsilon


class Budget(NamedTuple):
    """A claim as (epsilon, delta)."""

    epsilon: float
    delta: float


class Native(NamedTuple):
    """A claim in its own currency.

    Attributes:
        currency: "rho" for a zCDP claim, "mu" for a Gaussian one, else "epsilon".
        claimed: the number, > 0; infinity if nothing is claimed.
        delta: of an approximate claim; 0 for zCDP and Gaussian ones.
    """

    currency: str
    claimed: float
    delta: float


def native(claim: Guarantee) -> Native:
    """Returns the number that a lower bound must exceed to refute a claim."""
    if claim.rho is not None:
        return Native("rho", claim.rho, 0.0)
    if claim.mu is not None:
        return Native("mu", claim.mu, 0.0)
    return Native("epsilon", claim.epsilon if claim.is_private else math.inf, claim.delta)


def budget(claim: Guarantee) -> Budget:
    """Returns a claim's own (epsilon, delta), or those that its rho or mu implies at one delta."""
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

"""Adds many floats with compensation for rounding errors.

Without compensation, a float32 sum of ones stops growing at 2^24.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Sum(NamedTuple):
    """A running total of float arrays with the same shape.

    Attributes:
        total: the sum so far.
        excess: the rounding error of total, total minus the true sum. The next addition corrects this error.
    """

    total: jax.Array
    excess: jax.Array


def zero(like: jax.Array) -> Sum:
    """Returns an empty sum for arrays with the shape and dtype of `like`."""
    return Sum(jnp.zeros_like(like), jnp.zeros_like(like))


def add(running: Sum, value: jax.Array) -> Sum:
    """Adds a finite value to a running total; after an infinite value, the next total is NaN.

    Source:
        Kahan (1965). A test checks that XLA does not change the order of these operations.
    """
    corrected = value - running.excess
    total = running.total + corrected
    return Sum(total, (total - running.total) - corrected)

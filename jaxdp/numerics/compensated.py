"""Sums of many floats that never stop growing: a plain float32 sum of ones stays at 2^24."""

from typing import NamedTuple

import jax
import jax.numpy as jnp


class Sum(NamedTuple):
    """A running total of float arrays of one shape.

    Attributes:
        total: the sum so far.
        excess: the rounding error of total: total minus the true sum; the next addition corrects it.
    """

    total: jax.Array
    excess: jax.Array


def zero(like: jax.Array) -> Sum:
    """Returns an empty sum of arrays like this one."""
    return Sum(jnp.zeros_like(like), jnp.zeros_like(like))


def add(running: Sum, value: jax.Array) -> Sum:
    """Adds a value.

    Source:
        Kahan (1965). XLA keeps the order of these operations, as a test checks.
    """
    corrected = value - running.excess
    total = running.total + corrected
    return Sum(total, (total - running.total) - corrected)


def plus(left: Sum, right: Sum) -> Sum:
    """Adds two sums, with an error of about the square of a float's precision.

    Source:
        Dekker (1971), with Knuth's error-free addition (1969).
    """
    total = left.total + right.total
    shift = total - left.total
    error = (left.total - (total - shift)) + (right.total - shift)
    correction = error - (left.excess + right.excess)
    result = total + correction
    return Sum(result, (result - total) - correction)

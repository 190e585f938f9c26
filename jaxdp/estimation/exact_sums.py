"""Sums terms exactly, as integers on a public grid. All functions must be traced in 64-bit mode."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.estimation.public_weights import power_below


class Grid(NamedTuple):
    """The grid on which terms are summed as integers.

    Attributes:
        power: [dim] float64, powers of two; absolute values of terms are smaller than 2 * power.
        bits: ceil(log2(number of terms)).
        error: [] float64, a bound on how much rounding can increase the L2 sensitivity of the sum.
    """

    power: jax.Array
    bits: int
    error: jax.Array

    @classmethod
    def of(cls, bounds: jax.Array, count: int, changed: jax.Array | int = 1) -> "Grid":
        """Builds the grid for `count` terms in [-bounds, bounds], [dim] each; up to `changed` terms change together."""
        power, bits = jnp.where(bounds > 0, power_below(bounds), 1), math.ceil(math.log2(count))
        # Rounding adds up to a step of the grid to a term's change, and half a unit in the last place to each of two
        # sums.
        error = jnp.sum(jnp.where(bounds > 0, power, 0)) * 2.0 ** (bits - 50)
        if not isinstance(changed, int):  # each further changed term adds one step
            error = error * (1 + changed.astype(jnp.float64) * 2.0**-10)
        return cls(power, bits, error)

    def add(self, terms: jax.Array) -> jax.Array:
        """Returns the sum of terms ([num_terms, dim] float64) in steps of the grid, [dim] int64 in [-2^61, 2^61]."""
        units = jnp.round(terms / self.power[None] * 2.0 ** (60 - self.bits))
        return jnp.sum(units.astype(jnp.int64), axis=0, dtype=jnp.int64)

    def value(self, units: jax.Array) -> jax.Array:
        """Converts a sum in steps of the grid ([dim] int64) to the sum of the terms ([dim] float64)."""
        return units.astype(jnp.float64) * 2.0 ** (self.bits - 60) * self.power


def exact_statistic(terms: jax.Array, bounds: jax.Array, changed: jax.Array | int = 1) -> tuple[jax.Array, jax.Array]:
    """Sums terms as integers, so that one term's effect on the sum does not depend on the other terms.

    Args:
        terms: [num_samples, dim] float64.
        bounds: [dim] float64, public: the maximum absolute value of a term.
        changed: public: the maximum number of terms that change together; 1, or a [] integer array >= 1.

    Returns:
        The sum, [dim] float64, with NaN in columns that have a non-finite term; and a bound on how much rounding can
        increase the L2 sensitivity of the sum, [] float64.
    """
    grid = Grid.of(bounds, len(terms), changed)
    total = grid.value(grid.add(terms))
    return jnp.where(jnp.all(jnp.isfinite(terms), axis=0), total, jnp.nan), grid.error

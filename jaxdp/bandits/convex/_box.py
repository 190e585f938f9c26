"""The box of all points with entries in [-R, R]: projection, and a barrier in units with R = 1.

The barrier is the sum over coordinates of -ln(1 - x_i^2 / R^2). Each term is the ball's barrier in one dimension, so
the formulas of `_barrier` for |x| hold for every coordinate, with the Hessian w (1 + w). The parameter of the sum is
the number of coordinates: <gradient, Hessian^-1 gradient> is the sum of 2 x_i^2 / (R^2 + x_i^2), and each of its terms
is below 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits.convex._barrier import pull
from jaxdp.numerics import compensated


def project(x: jax.Array, radius: jax.Array) -> jax.Array:
    """Projects x onto the box of radius >= 0; returns [dim] float.

    Examples:
        >>> project(jnp.array([3.0, -0.5]), jnp.asarray(1.0)).tolist()
        [1.0, -0.5]
    """
    return jnp.clip(x, -radius, radius)


def descend(x: compensated.Sum, step: jax.Array, radius: jax.Array) -> compensated.Sum:
    """Moves x by `step` ([dim] float), and projects the result onto the box of radius >= 0."""
    total, excess = compensated.add(x, step)
    return compensated.Sum(project(total, radius), jnp.where(jnp.abs(total) > radius, 0, excess))


class BarrierPoint(NamedTuple):
    """A point of the box [-1, 1]^dim, with the Hessian of the barrier at this point.

    Attributes:
        x: [dim] float, the point.
        hessian: [dim] float >= 2, the diagonal of the barrier's Hessian, which is a diagonal matrix.
    """

    x: jax.Array
    hessian: jax.Array

    def add_curvature(self, curvature: jax.Array) -> "BarrierPoint":
        """Returns the same point, with the Hessian of curvature |x|^2 / 2 added to the barrier's Hessian."""
        return self._replace(hessian=self.hessian + curvature)

    def apply_hessian(self, vector: jax.Array) -> jax.Array:
        return self.hessian * vector

    def apply_inverse_root(self, vector: jax.Array) -> jax.Array:
        """Returns the inverse square root of the Hessian times the vector, [dim] float."""
        return vector / jnp.sqrt(self.hessian)


def minimize(slope: jax.Array, curvature: jax.Array | None = None) -> BarrierPoint:
    """Returns the minimiser of <slope, x> + curvature |x|^2 / 2 - sum of ln(1 - x_i^2) over the box [-1, 1]^dim.

    `slope` is [dim] float, and `curvature` is [] float >= 0; None means 0. The Hessian in the result is the barrier's
    Hessian, without the curvature.
    """
    size = jnp.abs(slope)
    p = size if curvature is None else pull(size, curvature)
    w = jnp.sqrt(1 + p * p)
    return BarrierPoint(-jnp.sign(slope) * (p / (1 + w)), w * (1 + w))

"""The box of all points whose entries lie in [-R, R]: the nearest point, and a barrier in the units of which R = 1.

The barrier is the sum over coordinates of -ln(1 - x_i^2 / R^2), each of which is the ball's in one dimension: what
`_barrier` says of |x| holds of every coordinate, whose Hessian is w (1 + w). The parameter of the sum is the number of
coordinates: <gradient, Hessian^-1 gradient> is the sum of 2 x_i^2 / (R^2 + x_i^2), of which each is below 1.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits.convex._barrier import pull
from jaxdp.numerics import compensated


def project(x: jax.Array, radius: jax.Array) -> jax.Array:
    """The point of the box that is nearest to x: [dim] float.

    Args:
        x: [dim] float.
        radius: [] float >= 0.

    Examples:
        >>> project(jnp.array([3.0, -0.5]), jnp.asarray(1.0)).tolist()
        [1.0, -0.5]
    """
    return jnp.clip(x, -radius, radius)


def descend(x: compensated.Sum, step: jax.Array, radius: jax.Array) -> compensated.Sum:
    """The point x + step, or the one of the box that is nearest to it, as `_ball.descend`: coordinate by coordinate."""
    total, excess = compensated.add(x, step)
    return compensated.Sum(project(total, radius), jnp.where(jnp.abs(total) > radius, 0, excess))


class BarrierPoint(NamedTuple):
    """A point of the box [-1, 1]^dim.

    Attributes:
        x: [dim] float, the point.
        hessian: [dim] float >= 2, the barrier's, which is diagonal.
    """

    x: jax.Array
    hessian: jax.Array

    def add_curvature(self, curvature: jax.Array) -> "BarrierPoint":
        """With the Hessian of the barrier plus curvature |x|^2 / 2."""
        return self._replace(hessian=self.hessian + curvature)

    def apply_hessian(self, vector: jax.Array) -> jax.Array:
        """The Hessian times the vector, [dim] float."""
        return self.hessian * vector

    def apply_inverse_root(self, vector: jax.Array) -> jax.Array:
        """The inverse root of the Hessian times the vector, [dim] float."""
        return vector / jnp.sqrt(self.hessian)


def minimize(slope: jax.Array, curvature: jax.Array | None = None) -> BarrierPoint:
    """The minimum of <slope, x> + curvature |x|^2 / 2 - sum of ln(1 - x_i^2) over the box.

    Args:
        slope: [dim] float.
        curvature: [] float >= 0; None is 0.
    """
    size = jnp.abs(slope)
    p = size if curvature is None else pull(size, curvature)
    w = jnp.sqrt(1 + p * p)
    return BarrierPoint(-jnp.sign(slope) * (p / (1 + w)), w * (1 + w))

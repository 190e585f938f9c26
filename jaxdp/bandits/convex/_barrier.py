"""The barrier -ln(1 - |x|^2 / R^2) of the ball, in units with R = 1, computed accurately near the boundary.

The code computes a point from its direction and its pull p = 2 |x| / (1 - |x|^2), the norm of the barrier's gradient at
the point. With w = sqrt(1 + p^2)

    |x| = p / (1 + w),    1 - |x|^2 = 2 / (1 + w),

and the Hessian's eigenvalues are w (1 + w) in the radial direction and 1 + w in all orthogonal directions. The code
never computes 1 - |x|, because this would lose precision near the boundary.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits.convex._ball_kernels import length

NEWTON_STEPS = 8


class BarrierPoint(NamedTuple):
    """A point of the unit ball, with the Hessian of the barrier at this point.

    Attributes:
        x: [dim] float, the point.
        axis: [dim] float, the unit vector from the centre towards the point; the zero vector at the centre.
        across: [] float >= 2, the eigenvalue of the Hessian in directions orthogonal to the axis.
        along: [] float >= 2, the eigenvalue of the Hessian along the axis.
    """

    x: jax.Array
    axis: jax.Array
    across: jax.Array
    along: jax.Array

    def add_curvature(self, curvature: jax.Array) -> "BarrierPoint":
        """Returns the same point, with the Hessian of curvature |x|^2 / 2 added to the barrier's Hessian."""
        return self._replace(across=self.across + curvature, along=self.along + curvature)

    def apply_hessian(self, vector: jax.Array) -> jax.Array:
        return stretch(vector, self.axis, self.across, self.along)

    def apply_inverse_root(self, vector: jax.Array) -> jax.Array:
        """Returns the inverse square root of the Hessian times the vector, [dim] float."""
        return stretch(vector, self.axis, 1 / jnp.sqrt(self.across), 1 / jnp.sqrt(self.along))


def minimize(slope: jax.Array, curvature: jax.Array | None = None) -> BarrierPoint:
    """Returns the minimiser of <slope, x> + curvature |x|^2 / 2 - ln(1 - |x|^2) over the unit ball.

    `slope` is [dim] float, and `curvature` is [] float >= 0; None means 0. The Hessian in the result is the barrier's
    Hessian, without the curvature.
    """
    size = length(slope)
    axis = -slope / jnp.where(size > 0, size, 1)
    p = size if curvature is None else pull(size, curvature)
    w = jnp.sqrt(1 + p * p)
    return BarrierPoint(axis * (p / (1 + w)), axis, 1 + w, w * (1 + w))


def pull(size: jax.Array, curvature: jax.Array) -> jax.Array:
    """Returns the root p >= 0 of p + curvature p / (1 + sqrt(1 + p^2)) = size, for size and curvature >= 0.

    The left side is concave and increasing. So if Newton's method starts below the root, its iterates stay below the
    root and approach it. Replacing 1 + sqrt(1 + p^2) by its lower bounds 2 and 1 + p gives two equations with larger
    left sides; Newton's method starts at the larger one of their roots. The number of steps is fixed; a test checks
    that it suffices in float32 and float64.
    """
    shift = size - 1 - curvature
    root = jnp.sqrt(shift * shift + 4 * size)
    # (shift + root) / 2, which is written in a form without cancellation if shift < 0
    far = jnp.where(shift > 0, (shift + root) / 2, 2 * size / jnp.where(shift > 0, 1, root - shift))
    p = jnp.maximum(far, size / (1 + curvature / 2))
    for _ in range(NEWTON_STEPS):
        w = jnp.sqrt(1 + p * p)
        remainder = size - p - curvature * (p / (1 + w))
        p = jnp.maximum(p + remainder / (1 + curvature / (w * (1 + w))), 0)
    return p


def stretch(vector: jax.Array, axis: jax.Array, across: jax.Array, along: jax.Array) -> jax.Array:
    """Multiplies the vector by `along` in the direction of the unit vector `axis`, and by `across` orthogonal to it."""
    inward = axis * jnp.sum(axis * vector)
    return across * (vector - inward) + along * inward

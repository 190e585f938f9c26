"""The ball of radius R around 0: random directions, norms and projections for convex bandits."""

import jax
import jax.numpy as jnp

from jaxdp.core import Interface, Probe, Space, default_float, scalar_leaf
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import tree_reduce
from jaxdp.random import normal
from jaxdp.validation import check_choice, check_count, check_positive

FEEDBACKS = ("point", "difference")


def checked_ball(dim: int, radius: float) -> tuple[int, float]:
    """Checks the dimension and the radius of a ball or a box, and returns them as a Python int and a float.

    Raises:
        ValueError: if dim is not an integer >= 1, radius is not finite and > 0, or radius or radius^2 is outside the
            range of JAX's default float dtype.
    """
    scalar_leaf("radius", check_positive("radius", radius))
    scalar_leaf("radius^2", float(radius) * float(radius))
    return check_count("dim", dim), float(radius)


def convex_interface(points: Space, feedback: str) -> Interface:
    """Returns the interface of actions and feedback: points with losses, or probes with differences of losses.

    Args:
        points: the space of points in the domain.
        feedback: "point" or "difference".

    Raises:
        ValueError: if feedback is not one of the names above.
    """
    if check_choice("feedback", feedback, FEEDBACKS) == "difference":
        return Interface(Probe(points, points), Space("numbers"))
    return Interface(points, Space("numbers"))


def inner(x: jax.Array, y: jax.Array) -> jax.Array:
    """Returns the inner product of two vectors, [] float; the terms are added in the order of `tree_reduce`."""
    return tree_reduce(jnp.add, x * y)


def length(x: jax.Array) -> jax.Array:
    """Returns the Euclidean norm ([] float) of a vector, also if squares overflow."""
    return repair(jnp.sqrt(inner(x, x)), x)


def repair(norm: jax.Array, vector: jax.Array) -> jax.Array:
    """Returns the norm ([] float) of a vector; `norm` is this norm, or infinity if squares overflow."""
    unit = jnp.where(norm < jnp.inf, 1, 2.0 ** (-jnp.finfo(vector.dtype).maxexp // 2 - 8)).astype(vector.dtype)
    return jnp.where(norm < jnp.inf, norm, jnp.sqrt(inner(vector * unit, vector * unit)) / unit)


def project(x: jax.Array, radius: jax.Array) -> jax.Array:
    """Projects x onto the ball of radius >= 0; returns [dim] float.

    Examples:
        >>> print(project(jnp.array([3.0, 4.0]), jnp.asarray(1.0)).round(3))
        [0.6 0.8]
    """
    return shrink_to(x, length(x), radius)


def shrink_to(x: jax.Array, norm: jax.Array, radius: jax.Array) -> jax.Array:
    """Projects x onto the ball of radius >= 0, where `norm` is the norm of x; returns [dim] float."""
    return jnp.where(norm > radius, x * (radius / jnp.where(norm > 0, norm, 1)), x)


def unit_vector(key: jax.Array, dim: int) -> jax.Array:
    """Draws a uniform point ([dim] float) on the unit sphere, by dividing normal variates by their norm.

    In one dimension the point is 1 or -1. If all variates are 0, which is possible for floats, the point is the first
    unit vector.
    """
    if dim == 1:  # exact, without a division
        return sign(key)
    variates = normal(key, dim)
    return normalize(variates, length(variates))


def sign(key: jax.Array) -> jax.Array:
    """Draws 1 or -1 ([1] float) from one bit."""
    return jnp.where(jax.random.bits(key, (1,), jnp.uint32) >> 31 == 0, -1, 1).astype(default_float())


def normalize(variates: jax.Array, norm: jax.Array) -> jax.Array:
    """Divides a vector by its norm `norm`; returns the first unit vector if the norm is 0."""
    first = (jnp.arange(len(variates)) == 0).astype(variates.dtype)
    return jnp.where(norm > 0, variates * (1 / jnp.where(norm > 0, norm, 1)), first)


def descend(x: compensated.Sum, step: jax.Array, radius: jax.Array) -> compensated.Sum:
    """Moves x by `step` ([dim] float), and projects the result onto the ball of radius >= 0.

    x and the result are compensated sums, because the steps of strongly convex descent eventually become smaller than
    the spacing of floats.
    """
    return descend_known_norm(length(compensated.add(x, step).total), radius, x, step)


def descend_known_norm(norm: jax.Array, radius: jax.Array, x: compensated.Sum, step: jax.Array) -> compensated.Sum:
    """Moves x by `step` and projects the result onto the ball of radius >= 0; `norm` is the norm of x + step."""
    total, excess = compensated.add(x, step)
    return compensated.Sum(shrink_to(total, norm, radius), jnp.where(norm > radius, 0, excess))

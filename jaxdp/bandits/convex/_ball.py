"""The ball of radius R about 0: random directions, lengths and projection for convex bandits."""

import jax
import jax.numpy as jnp

from jaxdp.core import Interface, Probe, Space, default_float, scalar_leaf
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import tree_reduce
from jaxdp.random import normal
from jaxdp.validation import check_choice, check_count, check_positive

FEEDBACKS = ("point", "difference")


def checked_ball(dim: int, radius: float) -> tuple[int, float]:
    """Checks the dimension and the radius of a ball or a box, and returns them as a Python integer and a float.

    Raises:
        ValueError: if dim is not a whole number >= 1, or radius is not > 0, or radius^2 is outside the range of floats.
    """
    scalar_leaf("radius", check_positive("radius", radius))
    scalar_leaf("radius^2", float(radius) * float(radius))
    return check_count("dim", dim), float(radius)


def convex_interface(points: Space, feedback: str) -> Interface:
    """Returns the interface of actions and feedback: points and losses, or pairs of points and loss differences.

    Args:
        points: the space of the domain's points.
        feedback: "point" or "difference".

    Raises:
        ValueError: if feedback is not one of the names above.
    """
    if check_choice("feedback", feedback, FEEDBACKS) == "difference":
        return Interface(Probe(points, points), Space("numbers"))
    return Interface(points, Space("numbers"))


def inner(x: jax.Array, y: jax.Array) -> jax.Array:
    """Returns the inner product of two vectors, [] float, with additions in the order of `tree_reduce`."""
    return tree_reduce(jnp.add, x * y)


def length(x: jax.Array) -> jax.Array:
    """Returns the Euclidean norm of a vector, [] float."""
    return jnp.sqrt(inner(x, x))


def project(x: jax.Array, radius: jax.Array) -> jax.Array:
    """Returns the point of the ball of radius >= 0 nearest to x, [dim] float.

    Examples:
        >>> print(project(jnp.array([3.0, 4.0]), jnp.asarray(1.0)).round(3))
        [0.6 0.8]
    """
    return shrink_to(x, length(x), radius)


def shrink_to(x: jax.Array, norm: jax.Array, radius: jax.Array) -> jax.Array:
    """Returns the point of the ball of radius >= 0 nearest to x, [dim] float; `norm` is the length of x."""
    return jnp.where(norm > radius, x * (radius / jnp.where(norm > 0, norm, 1)), x)


def unit_vector(key: jax.Array, dim: int) -> jax.Array:
    """Draws a uniform point of the unit sphere, [dim] float: normal variates, divided by their length.

    In one dimension the point is 1 or -1. If all variates are 0, which floats allow, it is the first unit vector.
    """
    if dim == 1:  # exact, and no division
        return sign(key)
    variates = normal(key, dim)
    return normalize(variates, length(variates))


def sign(key: jax.Array) -> jax.Array:
    """Draws 1 or -1, [1] float, from one bit."""
    return jnp.where(jax.random.bits(key, (1,), jnp.uint32) >> 31 == 0, -1, 1).astype(default_float())


def normalize(variates: jax.Array, norm: jax.Array) -> jax.Array:
    """Divides a vector by its length `norm`; returns the first unit vector if the length is 0."""
    first = (jnp.arange(len(variates)) == 0).astype(variates.dtype)
    return jnp.where(norm > 0, variates * (1 / jnp.where(norm > 0, norm, 1)), first)


def descend(x: compensated.Sum, step: jax.Array, radius: jax.Array) -> compensated.Sum:
    """Moves x by `step`, [dim] float, and returns the nearest point of the ball of radius >= 0.

    x and the result are compensated sums, because the steps of strongly convex descent become smaller than the spacing
    of floats.
    """
    return descend_known_norm(length(compensated.add(x, step).total), radius, x, step)


def descend_known_norm(norm: jax.Array, radius: jax.Array, x: compensated.Sum, step: jax.Array) -> compensated.Sum:
    """Moves x by `step` and returns the nearest point of the ball of radius >= 0; `norm` is the length of x + step."""
    total, excess = compensated.add(x, step)
    return compensated.Sum(shrink_to(total, norm, radius), jnp.where(norm > radius, 0, excess))

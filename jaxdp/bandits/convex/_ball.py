"""The ball of radius R about 0, in which convex bandits play: directions, lengths and the nearest point."""

import jax
import jax.numpy as jnp

from jaxdp import compensated
from jaxdp.core import Interface, Probe, Space, ball, default_float
from jaxdp.validation import check_choice

FEEDBACKS = ("point", "difference")


def convex_interface(dim: int, radius: float, feedback: str) -> Interface:
    """What is exchanged: a point of the ball and its loss, or a pair of points and the difference of their losses.

    Args:
        dim: of points, >= 1.
        radius: of the ball, finite and > 0.
        feedback: "point" or "difference".

    Raises:
        ValueError: if an argument is out of range.
    """
    points = ball(dim, radius)
    if check_choice("feedback", feedback, FEEDBACKS) == "difference":
        return Interface(Probe(points, points), Space("numbers"))
    return Interface(points, Space("numbers"))


def length(x: jax.Array) -> jax.Array:
    """The Euclidean norm of a vector, [] float."""
    return jnp.sqrt(jnp.sum(x * x))


def project(x: jax.Array, radius: jax.Array) -> jax.Array:
    """The point of the ball that is nearest to x: [dim] float.

    >>> project(jnp.array([3.0, 4.0]), jnp.asarray(1.0)).round(6).tolist()
    [0.6000000238418579, 0.800000011920929]

    Args:
        x: [dim] float.
        radius: [] float >= 0.
    """
    norm = length(x)
    return jnp.where(norm > radius, x * (radius / jnp.where(norm > 0, norm, 1)), x)


def unit_vector(key: jax.Array, dim: int) -> jax.Array:
    """A uniform point of the unit sphere, [dim] float: normal variates, divided by their length.

    In one dimension it is 1 or -1. Should all variates be 0, which floats allow, it is the first axis.
    """
    normals = jax.random.normal(key, (dim,), default_float())
    first = jnp.arange(dim) == 0
    if dim == 1:  # exact, and no division
        return jnp.where(normals < 0, -1.0, 1.0).astype(normals.dtype)
    norm = length(normals)
    return jnp.where(norm > 0, normals / jnp.where(norm > 0, norm, 1), first.astype(normals.dtype))


def descend(x: compensated.Sum, step: jax.Array, radius: jax.Array) -> compensated.Sum:
    """The point x + step, or the one of the ball that is nearest to it.

    What rounding takes from a step is kept for the next one: steps of strongly convex descent become far smaller than
    the distance of neighbouring floats.

    Args:
        x: sum of [dim] floats, whose total is a point of the ball.
        step: [dim] float.
        radius: [] float >= 0.
    """
    moved = compensated.add(x, step)
    norm = length(moved.total)
    is_out = norm > radius
    nearest = moved.total * (radius / jnp.where(norm > 0, norm, 1))
    return compensated.Sum(jnp.where(is_out, nearest, moved.total), jnp.where(is_out, 0, moved.excess))

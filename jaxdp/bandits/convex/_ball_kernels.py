"""Some functions of `_ball` in a layout for XLA on CPU; tests check that results are the same up to rounding."""

import jax
import jax.numpy as jnp

from jaxdp.bandits._lane_kernels import array_kernel, sum_kernels
from jaxdp.bandits.convex import _ball
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import lanes_last, own_kernel
from jaxdp.random import normal

inner = array_kernel(_ball.inner)
_repair = array_kernel(_ball.repair)  # a separate kernel, so that usual norms keep their last bits


def length(x: jax.Array) -> jax.Array:
    """Returns the Euclidean norm ([] float) of a vector, also if squares overflow."""
    return _repair(own_kernel(_length, x), x)


def _length(x: jax.Array) -> jax.Array:
    # Passes two arrays, because in one dimension the compiler would replace the root of a square by |x|.
    return jnp.sqrt(_ball.inner(lanes_last(x), lanes_last(x)))


def project(x: jax.Array, radius: jax.Array) -> jax.Array:
    """Projects x onto the ball of radius >= 0; returns [dim] float."""
    return _ball.shrink_to(x, length(x), radius)


def unit_vector(key: jax.Array, dim: int) -> jax.Array:
    """Draws a uniform point ([dim] float) on the unit sphere."""
    if dim == 1:
        return _ball.sign(key)
    variates = normal(key, dim)
    return array_kernel(_ball.normalize)(variates, own_kernel(_length, variates))


def descend(x: compensated.Sum, step: jax.Array, radius: jax.Array) -> compensated.Sum:
    """Moves x by `step` ([dim] float), and projects the result onto the ball of radius >= 0."""
    norm = array_kernel(lambda x, step: _length(compensated.add(x, step).total))(x, step)
    norm = array_kernel(lambda norm, start, step: _ball.repair(norm, compensated.add(start, step).total))(norm, x, step)
    return sum_kernels(_ball.descend_known_norm)(norm, jnp.asarray(radius), x, step)

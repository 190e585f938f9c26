"""The parameter set of maximum likelihood: a ball around zero, optionally within the zero-sum hyperplane."""

import jax
import jax.numpy as jnp
import numpy as np
from optax import projections

from jaxdp.core import Scalar, default_float, scalar_leaf
from jaxdp.validation import check_above, check_positive


def rate_leaf(learning_rate: float) -> Scalar:
    """Checks the learning rate of SGD (finite and > 0) and returns it as a `Params` leaf."""
    return scalar_leaf("learning_rate", check_positive("learning_rate", learning_rate))


def radius_leaf(radius: float) -> Scalar:
    """Checks the radius of the ball (> 0, and infinite or with a finite square) and returns it as a `Params` leaf."""
    leaf = scalar_leaf("radius", check_above("radius", radius, 0.0))
    largest = np.sqrt(np.finfo(default_float()).max)
    if largest < leaf < np.inf:
        raise ValueError(
            f"radius must be infinite or at most {largest:.3g}, so that its square is finite, got {radius}"
        )
    return leaf


def center(vectors: jax.Array) -> jax.Array:
    """Projects vectors ([..., dim] float) onto the zero-sum hyperplane {v : sum(v) = 0}."""
    return vectors - jnp.mean(vectors, axis=-1, keepdims=True)


def project(theta: jax.Array, radius: jax.Array, *, zero_sum: bool = False) -> jax.Array:
    """Projects theta onto the ball |theta| <= radius or, if `zero_sum`, onto the ball's part with sum(theta) = 0.

    Args:
        theta: [dim] float.
        radius: [] float > 0; infinity means no bound.
        zero_sum: whether the components must sum to zero.

    Returns:
        [dim] float.
    """
    if zero_sum:  # first onto the hyperplane: scaling into the ball does not leave it, so the result is exact
        theta = center(theta)
    bounded = projections.projection_l2_ball(theta, jnp.where(jnp.isinf(radius), 1.0, radius).astype(theta.dtype))
    return jnp.where(jnp.isinf(radius), theta, bounded)

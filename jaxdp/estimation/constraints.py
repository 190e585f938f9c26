"""The parameter set of maximum likelihood: a ball around zero, optionally within the zero-sum hyperplane."""

import jax
import jax.numpy as jnp
from optax import projections


def center(vectors: jax.Array) -> jax.Array:
    """Projects onto the zero-sum hyperplane {v : sum(v) = 0}, along the last axis ([..., dim] float)."""
    return vectors - jnp.mean(vectors, axis=-1, keepdims=True)


def project(theta: jax.Array, radius: jax.Array, *, zero_sum: bool = False) -> jax.Array:
    """Euclidean projection onto {theta : |theta| <= radius}, intersected with sum(theta) = 0 if `zero_sum`.

    Args:
        theta: [dim] float.
        radius: [] float > 0; infinity is no bound.
        zero_sum: whether the components must sum to zero (they do not identify a constant otherwise).

    Returns:
        [dim] float. Both sets contain zero and the hyperplane is a subspace, so projecting onto one after the other is
        the projection onto their intersection.
    """
    if zero_sum:
        theta = center(theta)
    bounded = projections.projection_l2_ball(theta, jnp.where(jnp.isinf(radius), 1.0, radius).astype(theta.dtype))
    return jnp.where(jnp.isinf(radius), theta, bounded)

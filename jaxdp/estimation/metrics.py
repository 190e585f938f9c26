"""Errors of an estimate: the l2 error, and the error in the semi-norm of the features."""

import jax
import jax.numpy as jnp


def l2_error(theta: jax.Array, parameter: jax.Array) -> jax.Array:
    """Returns the distance |theta - parameter| ([] float) in the units of the parameter.

    Args:
        theta: [dim] float, the estimate.
        parameter: [dim] float, the true parameter.
    """
    return jnp.linalg.norm(theta - parameter)


def semi_norm_error(theta: jax.Array, parameter: jax.Array, features: jax.Array, ridge: jax.Array) -> jax.Array:
    """Returns the error in the semi-norm of Sigma_D + ridge I, where Sigma_D is the mean of x x^T over samples.

    Args:
        theta: [dim] float, the estimate.
        parameter: [dim] float, the true parameter.
        features: [num_samples, dim] float.
        ridge: [] float >= 0, lambda.

    Returns:
        [] float >= 0; for ridge = 0 the root mean square error of the margins.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorems 3.1 and 4.2.
    """
    difference = theta - parameter
    margins = features @ difference
    return jnp.sqrt(jnp.mean(margins**2) + ridge * (difference @ difference))

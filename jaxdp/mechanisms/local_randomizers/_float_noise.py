"""Gaussian noise in floats, for local reports that are drawn in bulk."""

import jax
import jax.numpy as jnp

from jaxdp.mechanisms.tape import Entry, amend, record
from jaxdp.random import normal


def add_normals(key: jax.Array, values: jax.Array, stddev: jax.Array, sensitivity: float) -> jax.Array:
    """Adds independent normal noise in floats; on CPU the batch axis of `jax.vmap` is the fast axis.

    Args:
        key: a PRNG key.
        values: [n] float, the exact values.
        stddev: [] float >= 0.
        sensitivity: the L2 sensitivity for which stddev was calibrated.

    Returns:
        [n] float, values + stddev * noise: private if the rounding of floats is ignored. In float32, noise never
        exceeds 6.7 standard deviations.
    """
    noise = normal(key, values.shape, values.dtype, lanes_fast=True)
    declared = jnp.asarray(sensitivity, values.dtype)
    entry = Entry("gaussian", values, "l2", key, declared, noise_stddev=stddev, noise=noise, distribution="normal")
    noisy = record(entry) + stddev * noise
    amend(released=noisy)
    return noisy

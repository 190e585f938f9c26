"""Computes how unlikely noisy means of Bernoulli rewards are, and the largest mean that is not too unlikely."""

import jax
import jax.numpy as jnp
from jax.scipy.special import logit

from jaxdp.core import Scalar

LARGEST_SLOPE = (
    80.0  # exp(80) is finite in float32; larger slopes matter only for estimates below e^-80 and means next to 1
)


def divergence(estimate: jax.Array, mean: jax.Array, epsilon: Scalar) -> jax.Array:
    """Returns d_epsilon(estimate, mean) for estimates below the mean, and 0 for others.

    This is the minimum over z in [estimate, mean] of epsilon (z - estimate) + kl(z, mean), and also the maximum over
    slopes l in [0, epsilon] of -l estimate - ln E exp(-l X), where X has this mean (docs/proofs/noisy_totals.md).

    Args:
        estimate: [...] float in [0, 1].
        mean: [...] float in [0, 1].
        epsilon: [] float > 0; at infinity the result is the relative entropy kl(estimate, mean).
    """
    log_ratio = jnp.where(mean > estimate, logit(mean) - logit(estimate), 0)
    slope = jnp.minimum(log_ratio, jnp.minimum(epsilon, LARGEST_SLOPE))
    # Both forms are the same number. Each is accurate in its half of the means, even next to 0 or 1.
    low = -slope * estimate - jnp.log1p(mean * jnp.expm1(-slope))
    high = slope * (1 - estimate) - jnp.log1p((1 - mean) * jnp.expm1(slope))
    return jnp.where(mean < 0.5, low, high)


def largest_mean(estimate: jax.Array, level: jax.Array, epsilon: Scalar) -> jax.Array:
    """Returns the largest mean in [estimate, 1] at a divergence of at most `level` from the estimate, by bisection."""

    def halve(_, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        middle = (low + high) / 2
        is_likely = divergence(estimate, middle, epsilon) <= level
        return jnp.where(is_likely, middle, low), jnp.where(is_likely, high, middle)

    steps = jnp.finfo(estimate.dtype).nmant + 2
    return jax.lax.fori_loop(0, steps, halve, (estimate, jnp.ones_like(estimate)))[0]

"""A divergence of true means from noisy means of Bernoulli rewards, and the largest mean within a given divergence."""

import jax
import jax.numpy as jnp
from jax.scipy.special import logit

from jaxdp.core import Scalar

LARGEST_SLOPE = (
    80.0  # exp(80) is finite in float32; larger slopes matter only for estimates below e^-80 and means close to 1
)


def divergence(estimate: jax.Array, mean: jax.Array, epsilon: Scalar) -> jax.Array:
    """Returns d_epsilon(estimate, mean) where the estimate is below the mean, and 0 elsewhere.

    d_epsilon is the minimum over z in [estimate, mean] of epsilon (z - estimate) + kl(z, mean). It is also the maximum
    over slopes l in [0, epsilon] of -l estimate - ln E exp(-l X), where X is Bernoulli with this mean
    (docs/proofs/noisy_totals.md).

    Args:
        estimate: [...] float in [0, 1].
        mean: [...] float in [0, 1].
        epsilon: [] float > 0; at infinity the result is the relative entropy kl(estimate, mean).
    """
    log_ratio = jnp.where(mean > estimate, logit(mean) - logit(estimate), 0)
    slope = jnp.minimum(log_ratio, jnp.minimum(epsilon, LARGEST_SLOPE))
    # `low` and `high` are the same number in exact arithmetic. `low` is accurate for means below 1/2, even close to 0,
    # and `high` for all other means, even close to 1.
    low = -slope * estimate - jnp.log1p(mean * jnp.expm1(-slope))
    high = slope * (1 - estimate) - jnp.log1p((1 - mean) * jnp.expm1(slope))
    return jnp.where(mean < 0.5, low, high)


def largest_mean(estimate: jax.Array, level: jax.Array, epsilon: Scalar) -> jax.Array:
    """Returns the largest mean in [estimate, 1] with divergence at most `level` from the estimate, by bisection."""

    def halve(_, bounds: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = bounds
        middle = (low + high) / 2
        is_likely = divergence(estimate, middle, epsilon) <= level
        return jnp.where(is_likely, middle, low), jnp.where(is_likely, high, middle)

    steps = jnp.finfo(estimate.dtype).nmant + 2
    return jax.lax.fori_loop(0, steps, halve, (estimate, jnp.ones_like(estimate)))[0]

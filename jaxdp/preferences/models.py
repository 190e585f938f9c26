"""Samplers of preferences."""

import jax
import jax.numpy as jnp

from jaxdp.preferences.links import Link, logistic


def sample_comparisons(key: jax.Array, margins: jax.Array, link: Link = logistic) -> jax.Array:
    """Draws who is preferred in each comparison.

    One uniform draw per label: with the same key a larger margin never turns a 1 into a 0.

    Args:
        key: PRNG key.
        margins: float array of any shape, utility of the first item minus that of the second. NaN gives 0.
        link: P(first preferred) as a function of the margin.

    Returns:
        Labels of the margins' shape, int32 in {0, 1}: 1 (first preferred) with probability F(margin), exact but for the
        spacing of uniform draws, 2^-23 in float32 and 2^-52 in float64.

    Source: Bradley & Terry (1952) for the logistic link, Thurstone (1927) for the probit.

    >>> sample_comparisons(jax.random.key(0), jnp.array([-1e4, 1e4])).tolist()
    [0, 1]
    """
    margins = jnp.asarray(margins)
    uniforms = jax.random.uniform(key, margins.shape, margins.dtype)
    return (uniforms < link.cdf(margins)).astype(jnp.int32)

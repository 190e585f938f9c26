"""Draws preferences: comparisons, choices and rankings."""

import jax
import jax.numpy as jnp

from jaxdp.preferences.links import Link, logistic


def sample_comparisons(key: jax.Array, margins: jax.Array, link: Link = logistic) -> jax.Array:
    """Draws the label of each comparison.

    Each label is drawn from one uniform variate, so that with the same key a larger margin never turns a 1 into a 0.

    Args:
        key: PRNG key.
        margins: float array of any shape, the utility of the first item minus the utility of the second. NaN gives
            label 0.
        link: probability that the first item is preferred, as a function of the margin.

    Returns:
        Labels with the shape of margins, int32 in {0, 1}. A label is 1 (first preferred) with probability
        `link.cdf(margin)`, up to the spacing of uniform variates: 2^-23 in float32 and 2^-52 in float64.

    Source:
        Bradley & Terry (1952) for the logistic link, Thurstone (1927) for the probit link.

    Examples:
        >>> sample_comparisons(jax.random.key(0), jnp.array([-1e4, 1e4])).tolist()
        [0, 1]
    """
    margins = jnp.asarray(margins)
    uniforms = jax.random.uniform(key, margins.shape, margins.dtype)
    return (uniforms < link.cdf(margins)).astype(jnp.int32)


def sample_choices(key: jax.Array, utilities: jax.Array) -> jax.Array:
    """Draws the item that is preferred to all other items (Plackett-Luce, top-1).

    Item k of K is drawn with a probability proportional to exp(utilities[k]). With the same key, and utilities without
    NaN, the result is the first item of the ranking by `sample_rankings`.

    Args:
        key: PRNG key.
        utilities: [..., K] float. An item with utility -inf is never preferred to an item with a finite utility, and
            NaN counts as the best utility.

    Returns:
        [...] int32 in [0, K), exact up to the rounding of utilities and Gumbel noise.

    Source:
        Luce (1959); the Gumbel maximum (Yellott, 1977).

    Examples:
        >>> sample_choices(jax.random.key(0), jnp.array([[0.0, 1e4, 0.0], [1e4, 0.0, 0.0]])).tolist()
        [1, 0]
    """
    return jnp.argmax(_perturb(key, utilities), axis=-1).astype(jnp.int32)


def sample_rankings(key: jax.Array, utilities: jax.Array) -> jax.Array:
    """Draws a full ranking of K items (Plackett-Luce).

    Given the first items of the ranking, the next item is distributed as `sample_choices` among the remaining items.

    Args:
        key: PRNG key.
        utilities: [..., K] float, finite or -inf.

    Returns:
        [..., K] int32, the items from the best to the worst. They are sorted by utility plus Gumbel noise, which gives
        exactly this distribution, up to rounding.

    Source:
        Plackett (1975); the Gumbel sort (Yellott, 1977).

    Examples:
        >>> sample_rankings(jax.random.key(0), jnp.array([0.0, 2e4, 1e4])).tolist()
        [1, 2, 0]
    """
    return jnp.argsort(-_perturb(key, utilities), axis=-1).astype(jnp.int32)


def _perturb(key: jax.Array, utilities: jax.Array) -> jax.Array:
    utilities = jnp.asarray(utilities)
    return utilities + jax.random.gumbel(key, utilities.shape, utilities.dtype, mode="high")  # "low" has a coarse tail

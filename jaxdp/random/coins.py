"""Draws independent events with given probabilities, for simulated worlds."""

from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.numerics.kernels import lanes_last, lanes_last_if_many, own_kernel
from jaxdp.random._simulation_bits import words_of
from jaxdp.random.threefry import fast_key, has_words

DIGITS = 24  # binary digits of a float32 uniform variate
ONE = np.uint32(0x3F800000)  # the bits of 1 in float32


def coins(key: jax.Array, probabilities: jax.Array) -> jax.Array:
    """Draws independent Bernoulli variates, each 1 with the given probability and otherwise 0.

    For a fixed key, a larger probability can change a result only from 0 to 1. In float32, with a Threefry key, random
    bits come from `simulation_bits`. Use the function for simulated worlds, not for noise on which privacy depends.

    Args:
        key: [] typed PRNG key, not used for anything else.
        probabilities: [n] float in [0, 1], n >= 1; may be traced.

    Returns:
        [n] of the same dtype, each 0 or 1. In float32 on CPU, with a Threefry key, lanes of `jax.vmap` are the fast
        axis if n <= 16.

    Deviations:
        In float32 a probability is rounded up to a multiple of 2^-24 (2^-23 if the key is not a Threefry key).

    Examples:
        >>> print(coins(jax.random.key(0), jnp.array([0.0, 1.0, 0.0, 1.0, 1.0], jnp.float32)))
        [0. 1. 0. 1. 1.]
    """
    key, dtype = fast_key(key), probabilities.dtype
    if dtype != jnp.float32 or not has_words(key):
        return (jax.random.uniform(key, probabilities.shape, dtype) < probabilities).astype(dtype)
    return _events_kernel(key, lanes_last, lambda probabilities: probabilities, probabilities)


def coins_but_one(
    key: jax.Array, size: int, index: jax.Array, probability: jax.Array, other_probability: jax.Array
) -> jax.Array:
    """Draws independent Bernoulli variates: all indices except one have the same probability of drawing a 1.

    In float32, with a Threefry key, the probabilities are not stored as an array, and random bits come from
    `simulation_bits`. Probabilities are rounded as in `coins`. Use the function for simulated worlds, not for noise on
    which privacy depends.

    Args:
        key: [] typed PRNG key, not used for anything else.
        size: number n of variates, >= 1.
        index: [] int32, the index with another probability.
        probability: [] float in [0, 1], the probability at this index.
        other_probability: [] of the same dtype, the probability at all other indices.

    Returns:
        [n] of the dtype of `probability`, each 1 or 0. In float32 on CPU, with a Threefry key, `lanes_last_if_many`
        decides whether lanes of `jax.vmap` are the fast axis.

    Examples:
        >>> print(coins_but_one(jax.random.key(0), 3, jnp.int32(1), jnp.float32(1), jnp.float32(0)))
        [0. 1. 0.]
    """

    def probabilities(index: jax.Array, probability: jax.Array, other_probability: jax.Array) -> jax.Array:
        return jnp.where(jnp.arange(size, dtype=jnp.int32) == index, probability, other_probability)

    key = fast_key(key)
    if other_probability.dtype != jnp.float32 or not has_words(key):
        return coins(key, probabilities(index, probability, other_probability))
    return _events_kernel(key, lanes_last_if_many, probabilities, index, probability, other_probability)


def _events_kernel(
    key: jax.Array,
    layout: Callable[[jax.Array], jax.Array],
    probabilities: Callable[..., jax.Array],
    *inputs: jax.Array,
) -> jax.Array:
    """Draws Bernoulli variates in a separate kernel with the given layout; probabilities(*inputs) is [n] float32."""

    def inside(data: jax.Array, *inputs: jax.Array) -> jax.Array:
        return layout(_events(lanes_last(data), layout(probabilities(*map(layout, inputs)))))

    data = lanes_last(jax.random.key_data(key))
    return layout(own_kernel(inside, data, *map(layout, inputs)))


def _events(data: jax.Array, probabilities: jax.Array) -> jax.Array:
    """Draws Bernoulli variates [n] float32, given the words of a key [2] uint32 and probabilities [n] float32."""
    words = words_of(data, lax.iota(jnp.uint32, len(probabilities)))
    digits = lax.bitcast_convert_type(lax.shift_right_logical(words, np.uint32(32 - DIGITS)), jnp.int32)
    # Compares by the sign of the difference, which rounding does not change, so that all words have the same width, as
    # vector units need.
    under = lax.bitcast_convert_type(digits.astype(jnp.float32) * np.float32(2**-DIGITS) - probabilities, jnp.int32)
    below = lax.bitcast_convert_type(lax.shift_right_arithmetic(under, np.int32(31)), jnp.uint32)
    return lax.bitcast_convert_type(below & ONE, jnp.float32)

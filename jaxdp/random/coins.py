"""Independent events of given probabilities, for simulated worlds."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.numerics.kernels import lanes_last, own_kernel
from jaxdp.random._simulation_bits import words_of
from jaxdp.random.threefry import fast_key, has_words

DIGITS = 24  # of a uniform variate in 32 bits
ONE = np.uint32(0x3F800000)  # the bits of 1 in float32


def coins(key: jax.Array, probabilities: jax.Array) -> jax.Array:
    """Draws ones with these probabilities, else zeros; with one key, a smaller probability never gives a larger number.

    In 32 bits they come from `simulation_bits`, for simulated worlds; not for noise that privacy depends on.

    Args:
        key: [] typed PRNG key, which nothing else uses.
        probabilities: [n] float in [0, 1], n >= 1; may be traced.

    Returns:
        [n] of the same dtype. On CPU lanes of `jax.vmap` are the fast axis if n <= 16.

    Deviations:
        A probability is a multiple of 2^-24 in float32.

    Examples:
        >>> print(coins(jax.random.key(0), jnp.array([0.0, 1.0, 0.0, 1.0, 1.0], jnp.float32)))
        [0. 1. 0. 1. 1.]
    """
    key, dtype = fast_key(key), probabilities.dtype
    if dtype != jnp.float32 or not has_words(key):
        return (jax.random.uniform(key, probabilities.shape, dtype) < probabilities).astype(dtype)
    return lanes_last(own_kernel(_events, jax.random.key_data(key), lanes_last(probabilities)))


def coins_but_one(key: jax.Array, size: int, index: jax.Array, own: jax.Array, others: jax.Array) -> jax.Array:
    """Draws `coins` whose probabilities are equal except for one; the probabilities are not stored.

    Args:
        key: as for `coins`.
        size: n, number of coins, >= 1.
        index: [] int32, of the exception.
        own: [] float in [0, 1], its probability.
        others: [] of the same dtype, the probability of the others.

    Returns:
        [n], as `coins`.

    Examples:
        >>> print(coins_but_one(jax.random.key(0), 3, jnp.int32(1), jnp.float32(1), jnp.float32(0)))
        [0. 1. 0.]
    """

    def probabilities(index: jax.Array, own: jax.Array, others: jax.Array) -> jax.Array:
        return jnp.where(jnp.arange(size, dtype=jnp.int32) == index, own, others)

    key = fast_key(key)
    if others.dtype != jnp.float32 or not has_words(key):
        return coins(key, probabilities(index, own, others))
    inputs = (lanes_last(each) for each in (jax.random.key_data(key), index, own, others))
    return lanes_last(
        own_kernel(lambda data, *parts: _events(lanes_last(data), probabilities(*map(lanes_last, parts))), *inputs)
    )


def _events(data: jax.Array, probabilities: jax.Array) -> jax.Array:
    """Draws the coins, [n] float32, from a key's words [2] uint32 and [n] float32 probabilities."""
    probabilities = lanes_last(probabilities)
    words = words_of(data, lax.iota(jnp.uint32, len(probabilities)))
    digits = lax.bitcast_convert_type(lax.shift_right_logical(words, np.uint32(32 - DIGITS)), jnp.int32)
    # The sign of a difference, which is exact, in words of one width, as vector units need.
    under = lax.bitcast_convert_type(digits.astype(jnp.float32) * np.float32(2**-DIGITS) - probabilities, jnp.int32)
    below = lax.bitcast_convert_type(lax.shift_right_arithmetic(under, np.int32(31)), jnp.uint32)
    return lanes_last(lax.bitcast_convert_type(below & ONE, jnp.float32))

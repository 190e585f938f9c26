"""Makes random words and uniform variates from a key's words, without the hash of `jax.random.bits`."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

GOLDEN = np.uint32(0x9E3779B9)  # 2^32 over the golden ratio


def uniform_from_key(key: jax.Array, dtype: Any = float) -> jax.Array:
    """Returns a uniform variate in [0, 1) from the words of a key that is not used for anything else.

    The words of a round's key, from `fold_in`, are already pseudo-random. `jax.random.uniform` would hash these words
    again, which costs as much as making the key. This function only mixes the words. Because of the mixing, variates
    are usable even for the raw keys of seeds 0, 1, ..., which do not consist of random words. Use this function for
    simulated users and for the choice of an arm, not for noise on which privacy depends.

    Args:
        key: [] typed PRNG key. Do not draw anything else from this key or derive keys from it; this would use it twice.
        dtype: float32 or float64; by default JAX's default. In 32-bit mode, float64 gives float32.

    Returns:
        [] float, a multiple of 2^-23 in float32 and of 2^-52 in float64.

    Raises:
        ValueError: if dtype is another type.

    Source:
        The finalizer of MurmurHash3 (Appleby, 2011), a bijection of 32 bits.

    Examples:
        >>> import jax
        >>> u = jax.vmap(uniform_from_key)(jax.random.split(jax.random.key(0), 10_000))
        >>> bool(abs(u.mean() - 0.5) < 0.01)
        True
    """
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if dtype not in (np.float32, np.float64):  # other types have too few bits
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    words = jax.random.key_data(key)
    word = _join_words(words)
    if jnp.finfo(dtype).bits == 32:
        bits = lax.shift_right_logical(mix(word), np.uint32(9))
        return lax.bitcast_convert_type(bits | np.uint32(0x3F800000), jnp.float32).astype(dtype) - 1
    high, low = (
        mix(word_of_half).astype(jnp.uint64) for word_of_half in (word, words[-2] + GOLDEN * (words[-1] | np.uint32(1)))
    )
    bits = lax.shift_right_logical(lax.shift_left(high, np.uint64(32)) | low, np.uint64(12))
    return lax.bitcast_convert_type(bits | np.uint64(0x3FF0000000000000), jnp.float64) - 1


def own_word(key: jax.Array) -> jax.Array:
    """Returns a random word ([] uint32) from a key that is used for nothing else. Do not use it for private noise."""
    return mix(_join_words(jax.random.key_data(key)))


def _join_words(words: jax.Array) -> jax.Array:
    """Joins the last two words of a key. If one word is fixed, the result is a bijection of the other word."""
    return words[-1] + lax.shift_left(words[-2], np.uint32(16)) + lax.shift_right_logical(words[-2], np.uint32(16))


def mix(word: jax.Array) -> jax.Array:
    """Applies the finalizer of MurmurHash3, a bijection of [] uint32."""
    word = (word ^ lax.shift_right_logical(word, np.uint32(16))) * np.uint32(0x85EBCA6B)
    word = (word ^ lax.shift_right_logical(word, np.uint32(13))) * np.uint32(0xC2B2AE35)
    return word ^ lax.shift_right_logical(word, np.uint32(16))

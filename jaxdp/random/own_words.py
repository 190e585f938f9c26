"""A uniform variate from a key's own words, without the hash that random bits cost."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

GOLDEN = np.uint32(0x9E3779B9)  # 2^32 over the golden ratio


def key_uniform(key: jax.Array, dtype: Any = float) -> jax.Array:
    """One uniform variate in [0, 1) from the words of a key that nothing else uses.

    The keys of a round, which `fold_in` has made, are pseudo-random words already: drawing from them by
    `jax.random.uniform` hashes them once more, which costs as much as making the key. Here they are only mixed, so that
    keys of seeds 0, 1, ..., whose words are no random ones, do for a first look. For simulated users and for which arm
    is played; not for noise that privacy rests on.

    Args:
        key: [] typed PRNG key. To draw anything else from it, or to derive keys from it, would be to use it twice.
        dtype: float32 or float64, by default JAX's default.

    Returns:
        [] float, a multiple of 2^-23 in float32 and of 2^-52 in float64.

    Raises:
        ValueError: if dtype is another one.

    Source:
        The finalizer of MurmurHash3 (Appleby, 2011), a bijection of 32 bits.

    Examples:
        >>> import jax
        >>> u = jax.vmap(key_uniform)(jax.random.split(jax.random.key(0), 10_000))
        >>> bool(abs(u.mean() - 0.5) < 0.01)
        True
    """
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if dtype not in (np.float32, np.float64):  # no bits would be left of others
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    words = jax.random.key_data(key)
    word = _joined(words)
    if jnp.finfo(dtype).bits == 32:
        bits = lax.shift_right_logical(mixed(word), np.uint32(9))
        return lax.bitcast_convert_type(bits | np.uint32(0x3F800000), jnp.float32).astype(dtype) - 1
    high, low = (mixed(each).astype(jnp.uint64) for each in (word, words[-2] + GOLDEN * (words[-1] | np.uint32(1))))
    bits = lax.shift_right_logical(lax.shift_left(high, np.uint64(32)) | low, np.uint64(12))
    return lax.bitcast_convert_type(bits | np.uint64(0x3FF0000000000000), jnp.float64) - 1


def own_word(key: jax.Array) -> jax.Array:
    """Returns one random word, [] uint32, from the words of a key that nothing else uses, as `key_uniform` does."""
    return mixed(_joined(jax.random.key_data(key)))


def _joined(words: jax.Array) -> jax.Array:
    """Returns a bijection of either word, given the other; those of larger keys come in by their last two."""
    return words[-1] + lax.shift_left(words[-2], np.uint32(16)) + lax.shift_right_logical(words[-2], np.uint32(16))


def mixed(word: jax.Array) -> jax.Array:
    """The finalizer of MurmurHash3: a bijection of [] uint32."""
    word = (word ^ lax.shift_right_logical(word, np.uint32(16))) * np.uint32(0x85EBCA6B)
    word = (word ^ lax.shift_right_logical(word, np.uint32(13))) * np.uint32(0xC2B2AE35)
    return word ^ lax.shift_right_logical(word, np.uint32(16))

"""Threefry-2x32 with its rounds unrolled, as a JAX PRNG implementation.

The values are those of JAX's built-in `threefry2x32` word for word: bits, split, fold_in, and so every sampler. On CPU
JAX computes the rounds in a rolled loop, which costs several times more; here XLA sees straight-line code and
vectorises it.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl, threefry_prng_impl
from jax.typing import ArrayLike

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA  # Skein's key-schedule constant
LARGEST_INDEX = 2**32
UNSIGNED = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32, 64: jnp.uint64}


def hash_words(key0: ArrayLike, key1: ArrayLike, high: ArrayLike, low: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Threefry-2x32, 20 rounds: hashes the counter (high, low) under the key (key0, key1), elementwise in uint32.

    Source: Salmon, Moraes, Dror & Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".
    """
    key0, key1, high, low = (jnp.asarray(word, jnp.uint32) for word in (key0, key1, high, low))
    schedule = (key0, key1, key0 ^ key1 ^ np.uint32(PARITY))
    x0, x1 = high + schedule[0], low + schedule[1]
    for group in range(5):
        for rotation in ROTATIONS[group % 2]:
            x0 = x0 + x1
            x1 = lax.shift_left(x1, np.uint32(rotation)) | lax.shift_right_logical(x1, np.uint32(32 - rotation))
            x1 = x0 ^ x1
        x0 = x0 + schedule[(group + 1) % 3]
        x1 = x1 + schedule[(group + 2) % 3] + np.uint32(group + 1)
    return x0, x1


def _hash_range(key: jax.Array, shape: tuple[int, ...]) -> tuple[jax.Array, jax.Array]:
    """Hashes the row-major index of every element of an array of that shape."""
    low = lax.reshape(lax.iota(jnp.uint32, math.prod(shape)), shape)
    return hash_words(key[0], key[1], np.uint32(0), low)


def _random_bits(key: jax.Array, bit_width: int, shape: tuple[int, ...]) -> jax.Array:
    if math.prod(shape) >= LARGEST_INDEX:  # the index needs both words
        return threefry_prng_impl.random_bits(key, bit_width, shape)
    high, low = _hash_range(key, shape)
    dtype = UNSIGNED[bit_width]
    if bit_width == 64:
        return lax.shift_left(high.astype(dtype), jnp.asarray(32, dtype)) | low.astype(dtype)
    return (high ^ low).astype(dtype)


def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    if math.prod(shape) >= LARGEST_INDEX:
        return threefry_prng_impl.split(key, shape)
    return jnp.stack(_hash_range(key, shape), axis=len(shape))


def _fold_in(key: jax.Array, data: int) -> jax.Array:
    high, low = threefry_prng_impl.seed(jnp.asarray(data, jnp.uint32))
    return jnp.stack(hash_words(key[0], key[1], high, low))


IMPLEMENTATION = define_prng_impl(
    key_shape=threefry_prng_impl.key_shape,
    seed=threefry_prng_impl.seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name="jaxdp_threefry2x32",
    tag="jdp",
)


def key(seed: int) -> jax.Array:
    """A typed key whose random values are those of `jax.random.key(seed)`, computed faster on CPU.

    Args:
        seed: an integer, as for `jax.random.key`.

    Returns:
        [] key; every function of `jax.random` takes it.

    >>> import jax, jaxdp
    >>> bool(jax.random.uniform(jaxdp.random.key(0)) == jax.random.uniform(jax.random.key(0, impl="threefry2x32")))
    True
    """
    return jax.random.key(seed, impl=IMPLEMENTATION)


def key_from_data(data: ArrayLike, implementation: str) -> jax.Array:
    """The key that has these words, as `jax.random.wrap_key_data`; it knows this module's implementation too.

    Args:
        data: [..., 2] uint32, from `jax.random.key_data`.
        implementation: the text of `jax.random.key_impl`.

    Returns:
        [...] key.

    Raises:
        ValueError: if there is no such implementation.
    """
    mine = implementation == str(jax.random.key_impl(key(0)))
    return jax.random.wrap_key_data(jnp.asarray(data, jnp.uint32), impl=IMPLEMENTATION if mine else implementation)


def fast(key: jax.Array) -> jax.Array:
    """The same key with the same values, computed faster where that is possible.

    Args:
        key: typed keys of any implementation and shape.

    Returns:
        Keys of this module's implementation if `key` is of JAX's built-in Threefry with its default, partitionable
        counters; else `key` itself.
    """
    builtin = str(jax.random.key_impl(key)) == "threefry2x32"
    if not (builtin and getattr(jax.config, "jax_threefry_partitionable", True)):
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=IMPLEMENTATION)

"""Random words of simulated worlds: a round's key, expanded without a hash for each word."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.random._normals import _pair
from jaxdp.random.own_words import GOLDEN, mixed


def world_words(key: jax.Array, shape: int | tuple[int, ...]) -> jax.Array:
    """Words that look random, from a key that nothing else uses; on CPU a third of the time of Threefry's.

    A child key, which `fold_in` or `split` has made, is a hash already. Its second-last word starts a sequence of
    equidistant numbers, which are mixed, joined with its last word, and mixed again. So keys with the same start differ
    in their last word, and the words of one key differ by their places. For what is simulated in bulk, such as contexts
    of simulated users; not for noise that privacy rests on.

    Args:
        key: [] typed PRNG key, made by `fold_in` or `split`: words of keys of seeds 0, 1, ... are not hashes. To draw
            anything else from it, or to derive keys from it, would be to use it twice.
        shape: of what is drawn, or its length; at most 2^32 words.

    Returns:
        [shape] uint32.

    Source:
        The finalizer of MurmurHash3 (Appleby, 2011), twice; a Weyl sequence before it, as Steele, Lea & Flood (2014),
        SplitMix, have it.

    Examples:
        >>> import jax
        >>> words = world_words(jax.random.fold_in(jax.random.key(0), 1), 10_000)
        >>> bool(abs((words >> 31).mean() - 0.5) < 0.02)
        True
    """
    sizes = (shape,) if isinstance(shape, int) else shape
    start, other = jax.random.key_data(key)[-2:]
    place = lax.reshape(lax.iota(jnp.uint32, math.prod(sizes)), sizes)
    return mixed(mixed(start + place * GOLDEN) ^ other)


def world_uniforms(key: jax.Array, shape: int | tuple[int, ...], dtype: Any = float) -> jax.Array:
    """Uniform variates in [0, 1) of `world_words`.

    Args:
        key: as there.
        shape: as there.
        dtype: float32 or float64, by default JAX's default.

    Returns:
        [shape] float, multiples of 2^-24 in float32 and of 2^-53 in float64.

    Raises:
        ValueError: if dtype is another one.
    """
    dtype = _float_type(dtype)
    sizes = (shape,) if isinstance(shape, int) else shape
    if dtype == np.float32:
        # By way of int32, which vector units convert.
        return (world_words(key, sizes) >> 8).astype(jnp.int32).astype(dtype) * np.float32(2**-24)
    high, low = world_words(key, (2, *sizes))
    return ((high >> 5).astype(dtype) * 2**26 + (low >> 6).astype(dtype)) * 2**-53


def world_normals(key: jax.Array, shape: int | tuple[int, ...], dtype: Any = float) -> jax.Array:
    """Standard normal variates of `world_words`, made as those of `normals`.

    Args:
        key: as there.
        shape: as there.
        dtype: float32 or float64, by default JAX's default.

    Returns:
        [shape] float.

    Raises:
        ValueError: if dtype is another one.
    """
    dtype = _float_type(dtype)
    sizes = (shape,) if isinstance(shape, int) else shape
    size = math.prod(sizes)
    half = -(-size // 2)
    if dtype == np.float32:
        drawn = jnp.concatenate(_pair(*world_words(key, (2, half))))
    else:
        first, second = world_uniforms(key, (2, half), dtype)
        radius, angle = jnp.sqrt(-2 * jnp.log1p(-first)), 2 * math.pi * second
        drawn = jnp.concatenate([radius * jnp.cos(angle), radius * jnp.sin(angle)])
    return drawn[:size].reshape(sizes)


def _float_type(dtype: Any) -> np.dtype:
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    return dtype

"""Draws normal variates, two from each hash in float32. Used for Gamma variates, directions and local reports."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.random.threefry import of_word_pairs


def normal(key: jax.Array, shape: int | tuple[int, ...], dtype: Any = float, *, lanes_fast: bool = False) -> jax.Array:
    """Draws independent standard normal variates by the Box-Muller method.

    In float32 the two words of a hash give two variates. This needs half the hashes of `jax.random.normal`, and is
    faster on CPU. In float32 the angle has 32 random bits and the radius has 31, so no variate exceeds 6.7 in absolute
    value (5.4 in `jax.random.normal`); in float64 no variate exceeds 8.5.

    Args:
        key: [] typed PRNG key, not used for anything else.
        shape: shape of the result; an integer is the length of a vector.
        dtype: float32 or float64; by default JAX's default. In 32-bit mode, float64 gives float32.
        lanes_fast: whether lanes of `jax.vmap` become the fast axis on CPU in float32 (see `lanes_last`). For at most
            16 pairs, lanes always become the fast axis. Values do not depend on this.

    Returns:
        [*shape] float.

    Raises:
        ValueError: if dtype is another type.

    Source:
        Box & Muller (1958).

    Examples:
        >>> import jax
        >>> x = normal(jax.random.key(0), 10_000)
        >>> bool(abs(x.mean()) < 0.05), bool(abs(x.std() - 1) < 0.04)
        (True, True)
    """
    dtype = jax.dtypes.canonicalize_dtype(dtype)
    if dtype not in (np.float32, np.float64):
        raise ValueError(f"dtype must be float32 or float64, got {dtype}")
    sizes = (shape,) if isinstance(shape, int) else shape
    size = math.prod(sizes)
    half = -(-size // 2)
    if dtype == np.float64:
        variates = of_uniforms(*jax.random.uniform(key, (2, half), dtype))
    else:
        variates = of_word_pairs(_pair, key, half, lanes_fast=lanes_fast)
    return variates[:size].reshape(sizes)


def of_uniforms(first: jax.Array, second: jax.Array) -> jax.Array:
    """Converts two arrays of uniform variates on [0, 1), each [size], to normal variates, [2 * size]."""
    radius, angle = jnp.sqrt(-2 * jnp.log1p(-first)), 2 * math.pi * second
    return jnp.concatenate([radius * jnp.cos(angle), radius * jnp.sin(angle)])


def _pair(first: jax.Array, second: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Converts two random uint32 words to two independent standard normal float32 variates, elementwise."""
    # In (0, 1]. Small numbers, which give large radii, have all 31 bits.
    uniform = (first >> 1).astype(jnp.int32).astype(jnp.float32) * np.float32(2**-31) + np.float32(2**-32)
    radius = jnp.sqrt(-2 * jnp.log(uniform))
    # Two bits choose the quadrant, and all other bits choose the angle in the quadrant around the first axis.
    turn = lax.bitcast_convert_type(second << 2, jnp.int32).astype(jnp.float32) * np.float32(2**-31 * math.pi / 4)
    square = turn * turn
    sine = turn * (1 + square * (-1 / 6 + square * (1 / 120 + square * (-1 / 5040 + square / 362880))))
    cosine = 1 + square * (-1 / 2 + square * (1 / 24 + square * (-1 / 720 + square / 40320)))
    radius = jnp.where(second >> 31 == 1, -radius, radius)
    is_turned = (second >> 30) & 1 == 1
    return radius * jnp.where(is_turned, sine, cosine), radius * jnp.where(is_turned, cosine, sine)

"""Makes random words for simulated worlds by mixing a key's words, which is several times faster than hashing."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.numerics.kernels import lanes_last
from jaxdp.random._normal import _pair, of_uniforms
from jaxdp.random.key_bits import GOLDEN, mix
from jaxdp.random.threefry import has_words


def simulation_bits(key: jax.Array, shape: int | tuple[int, ...]) -> jax.Array:
    """Returns random words for one round of a simulated world, from the round's key.

    The key of a round, from `jax.random.fold_in`, has 64 pseudo-random bits. `jax.random.bits` computes a Threefry hash
    of about 80 operations for each word. In this function, word i is mix(b ^ mix(a + i * c)), with 18 operations, where
    a and b are the words of the key and c is a constant. If a and b are uniform, each word is uniform, and the quality
    of the mixing determines how nearly two words are independent. Joint distributions of three or more words are
    tested, not proved.

    Use this function for simulated worlds, never for noise on which privacy depends or for draws of a learner. Do not
    draw anything else from the key, and do not derive keys from it, because this would use the key twice.

    Args:
        key: [] typed PRNG key, not used for anything else.
        shape: shape of the result; an integer >= 0 is the length of a vector.

    Returns:
        [*shape] uint32. With the same key, fewer words are the first words of a larger array, in row-major order. A key
        that is not a Threefry key gives the result of `jax.random.bits`.

    Source:
        The finalizer of MurmurHash3 (Appleby, 2011), twice, over a Weyl sequence, as in SplitMix (Steele, Lea & Flood,
        2014).

    Examples:
        >>> import jax
        >>> words = simulation_bits(jax.random.key(0), 10_000)
        >>> bool(abs((words >> 31).mean() - 0.5) < 0.02)
        True
    """
    sizes = (shape,) if isinstance(shape, int) else shape
    if not has_words(key):
        return jax.random.bits(key, sizes, jnp.uint32)
    data = lanes_last(jax.random.key_data(key))  # so that each word of the keys is contiguous along lanes
    return words_of(data, lax.reshape(lax.iota(jnp.uint32, math.prod(sizes)), sizes))


def words_of(data: jax.Array, index: jax.Array) -> jax.Array:
    """Returns the words ([...] uint32) of `simulation_bits` at indices, given the words ([2] uint32) of a key."""
    # Words i and j are mix(u) and mix(u ^ d), where u is uniform and independent of d = mix(a + i c) ^ mix(a + j c).
    return mix(data[1] ^ mix(data[0] + index * GOLDEN))


def world_uniforms(key: jax.Array, shape: int | tuple[int, ...], dtype: Any = float) -> jax.Array:
    """Returns uniform variates in [0, 1) from `simulation_bits`.

    Variates are multiples of 2^-24 in float32, and of 2^-53 in float64.

    Raises:
        ValueError: if dtype is not float32 or float64.
    """
    dtype = _float_type(dtype)
    sizes = (shape,) if isinstance(shape, int) else shape
    if dtype == np.float32:
        # The conversion has int32 as an intermediate step, because vector units can convert int32.
        return (simulation_bits(key, sizes) >> 8).astype(jnp.int32).astype(dtype) * np.float32(2**-24)
    high, low = simulation_bits(key, (2, *sizes))
    return ((high >> 5).astype(dtype) * 2**26 + (low >> 6).astype(dtype)) * 2**-53


def world_normals(key: jax.Array, shape: int | tuple[int, ...], dtype: Any = float) -> jax.Array:
    """Returns standard normal variates for simulated worlds, by the Box-Muller method from `simulation_bits`.

    Raises:
        ValueError: if dtype is not float32 or float64.
    """
    dtype = _float_type(dtype)
    sizes = (shape,) if isinstance(shape, int) else shape
    size = math.prod(sizes)
    half = -(-size // 2)
    if dtype == np.float32:
        variates = jnp.concatenate(_pair(*simulation_bits(key, (2, half))))
    else:
        variates = of_uniforms(*world_uniforms(key, (2, half), dtype))
    return variates[:size].reshape(sizes)


def _float_type(dtype: Any) -> np.dtype:
    kind = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    if kind.name not in ("float32", "float64"):
        raise ValueError(f"dtype must be float32 or float64, got {kind}")
    return kind

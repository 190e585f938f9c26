"""Words of simulated worlds: mixed from the words of a key, which is several times cheaper than hashing."""

import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.random._normal import _pair, of_uniforms
from jaxdp.random.key_bits import GOLDEN, mix
from jaxdp.random.threefry import has_words


def simulation_bits(key: jax.Array, shape: int | tuple[int, ...]) -> jax.Array:
    """Returns words for the draws of a simulated world in one round, from the key of that round.

    The key of a round, made by `jax.random.fold_in`, is 64 pseudo-random bits. `jax.random.bits` spends a Threefry hash
    on each word drawn from it, about 80 operations; these words take 18: mixed(b ^ mixed(a + i c)) for the key's words
    a and b and a constant c. If a and b are uniform, so is each word, and two words are mixed(u) and mixed(u ^ d) with
    u uniform and independent of d = mixed(a + i c) ^ mixed(a + j c): all pairs would be equally likely if d were
    uniform, and mixing makes d as uniform as a random function would. Joint distributions of three or more words are
    tested, not proved.

    For simulated worlds; never for the noise that privacy depends on, nor for a learner's draws. Drawing anything else
    from the key, or deriving keys from it, would use it twice.

    Args:
        key: [] typed PRNG key, which nothing else uses.
        shape: of the result, or its length, >= 0.

    Returns:
        [*shape] uint32. Fewer words of the same key are the beginning of more, in row-major order. For a key that is
        not Threefry's, `jax.random.bits`.

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
    return words_of(jax.random.key_data(key), lax.reshape(lax.iota(jnp.uint32, math.prod(sizes)), sizes))


def words_of(data: jax.Array, index: jax.Array) -> jax.Array:
    """Returns the words of `simulation_bits` at some indices, for use within a kernel.

    Args:
        data: [2] uint32, the words of a key.
        index: [...] uint32.
    """
    return mix(data[1] ^ mix(data[0] + index * GOLDEN))


def world_uniforms(key: jax.Array, shape: int | tuple[int, ...], dtype: Any = float) -> jax.Array:
    """Returns uniform variates in [0, 1) from `simulation_bits`.

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
        # Through int32, which vector units convert.
        return (simulation_bits(key, sizes) >> 8).astype(jnp.int32).astype(dtype) * np.float32(2**-24)
    high, low = simulation_bits(key, (2, *sizes))
    return ((high >> 5).astype(dtype) * 2**26 + (low >> 6).astype(dtype)) * 2**-53


def world_normals(key: jax.Array, shape: int | tuple[int, ...], dtype: Any = float) -> jax.Array:
    """Returns standard normal variates from `simulation_bits`, computed as those of `normal`.

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
        drawn = jnp.concatenate(_pair(*simulation_bits(key, (2, half))))
    else:
        drawn = of_uniforms(*world_uniforms(key, (2, half), dtype))
    return drawn[:size].reshape(sizes)


def _float_type(dtype: Any) -> np.dtype:
    kind = np.dtype(jax.dtypes.canonicalize_dtype(dtype))
    if kind.name not in ("float32", "float64"):
        raise ValueError(f"dtype must be float32 or float64, got {kind}")
    return kind

"""Threefry-2x32 with unrolled rounds, as a JAX PRNG implementation.

Seeds, bits, split and fold_in give the same words as JAX's `threefry2x32` with partitionable counters
(`jax_threefry_partitionable`, JAX's default). So every function of `jax.random` gives the same results, with two
exceptions. First, `poisson` rejects keys of this implementation. Second, XLA may fuse the computation of floats from
words differently. The last bits of these floats may then differ, and also counts or indices that depend on the floats.
With JAX 0.10 on CPU this happens only under jit, in ball, beta, f and generalized_normal, by less than 10 units in the
last place.

On CPU, JAX computes the rounds in a loop, which is several times slower. This implementation is straight-line code,
which XLA vectorises. The shapes of the arrays in this module affect only the code that XLA makes on CPU, never the
values.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.extend.random import define_prng_impl, threefry_prng_impl
from jax.typing import ArrayLike

from jaxdp.numerics.kernels import MAX_UNROLLED, lanes_last, noinline
from jaxdp.numerics.platforms import by_platform

NAME = "jaxdp_threefry2x32"
ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
PARITY = 0x1BD11BDA  # Skein's key-schedule constant
CHAINS = 4  # number of vectors of hashes that are computed at a time
VECTOR = 8  # number of 32-bit words in 256 bits
SHORT = 8  # a split into fewer keys than this uses a single loop
LARGEST_INDEX = 2**32
UNSIGNED = {8: jnp.uint8, 16: jnp.uint16, 32: jnp.uint32, 64: jnp.uint64}


def hash_words(key0: ArrayLike, key1: ArrayLike, high: ArrayLike, low: ArrayLike) -> tuple[jax.Array, jax.Array]:
    """Hashes the counter (high, low) with the key (key0, key1), elementwise in uint32, by Threefry-2x32 with 20 rounds.

    Source:
        Salmon, Moraes, Dror & Shaw (2011), "Parallel random numbers: as easy as 1, 2, 3".
    """
    key0, key1, high, low = (jnp.asarray(word, jnp.uint32) for word in (key0, key1, high, low))
    schedule = (key0, key1, key0 ^ key1 ^ np.uint32(PARITY))
    x0, x1 = high + schedule[0], low + schedule[1]
    for group in range(5):  # `lax`, as the operators of arrays take several times as long to trace
        for rotation in ROTATIONS[group % 2]:
            left, right = lax.shift_left(x1, np.uint32(rotation)), lax.shift_right_logical(x1, np.uint32(32 - rotation))
            x0 = lax.add(x0, x1)
            x1 = lax.bitwise_xor(x0, lax.bitwise_or(left, right))
        x0 = lax.add(x0, schedule[(group + 1) % 3])
        x1 = lax.add(lax.add(x1, schedule[(group + 2) % 3]), np.uint32(group + 1))
    return x0, x1


def _hash_index(key: jax.Array, index: jax.Array) -> tuple[jax.Array, jax.Array]:
    return hash_words(key[0], key[1], np.uint32(0), index)


def _hash_pairs(key: jax.Array, index: jax.Array, is_low: jax.Array) -> jax.Array:
    """Hashes each index with the words of a key. Returns the low word if `is_low` is 1, and the high word if 0."""
    # XLA on CPU computes a hash only once if the hash's two words are neighbours. For a concatenation or a select of
    # the words, XLA makes two loops and computes the hash twice. So this function uses a mask.
    high, low = _hash_index(key, index)
    return low ^ ((high ^ low) & (is_low - np.uint32(1)))


# Eager calls are compiled once for each shape; in a larger program the operations are inlined. The implementation
# consists of module-level functions, as pickle finds them by name.
def _random_bits(key: jax.Array, bit_width: int, shape: tuple[int, ...]) -> jax.Array:
    if math.prod(shape) >= LARGEST_INDEX:  # the index needs both words
        return threefry_prng_impl.random_bits(key, bit_width, shape)
    return _bits(key, bit_width, shape)


@partial(jax.jit, static_argnums=(1, 2), inline=True)
def _bits(key: jax.Array, bit_width: int, shape: tuple[int, ...]) -> jax.Array:
    size, dtype = math.prod(shape), UNSIGNED[bit_width]

    def words(key, shape=shape):
        high, low = _hash_index(key, lax.reshape(lax.iota(jnp.uint32, math.prod(shape)), shape))
        if bit_width == 64:
            return lax.shift_left(high.astype(dtype), jnp.asarray(32, dtype)) | low.astype(dtype)
        return (high ^ low).astype(dtype)

    def pad_and_slice(key):
        blocks = noinline(lambda key: words(key, (-(-size // (width * chains)) * width, chains)))(key)
        return lax.reshape(lax.slice(lax.reshape(blocks, (blocks.size,)), (0,), (size,)), shape)

    # A hash is a chain of dependent operations; an unrolled inner loop overlaps several hashes. The number of words is
    # rounded up to whole vectors if this adds at most a quarter. Narrower words need no unrolling, because more of them
    # fit in a vector.
    for width, chains in ((VECTOR, CHAINS), (VECTOR, 1)):
        if bit_width >= 32 and -size % (width * chains) <= size // 4:
            return by_platform(key, cpu=pad_and_slice, default=words)
    return by_platform(key, cpu=noinline(words), default=words)


def _split(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    if math.prod(shape) >= LARGEST_INDEX:
        return threefry_prng_impl.split(key, shape)
    return _children(key, shape)


@partial(jax.jit, static_argnums=1, inline=True)
def _children(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    size = math.prod(shape)
    # XLA unrolls a single inner loop over a few keys and then vectorises over lanes, but does not unroll nested loops.
    dimensions = (2 * size,) if size < SHORT else (size, 2)

    def pairs(key):
        position = lax.reshape(lax.iota(jnp.uint32, 2 * size), dimensions)
        return _hash_pairs(key, position >> 1, position & 1)

    return lax.reshape(by_platform(key, cpu=noinline(pairs), default=pairs), (*shape, 2))


def _fold_in(key: jax.Array, data: int) -> jax.Array:
    return _child(key, jnp.asarray(data, jnp.uint32))


@partial(jax.jit, inline=True)
def _child(key: jax.Array, data: jax.Array) -> jax.Array:
    def pair(key, data):
        return _hash_pairs(key, data, lax.iota(jnp.uint32, 2))

    return by_platform(key, data, cpu=noinline(pair), default=pair)


IMPLEMENTATION = define_prng_impl(
    key_shape=threefry_prng_impl.key_shape,
    seed=threefry_prng_impl.seed,
    split=_split,
    random_bits=_random_bits,
    fold_in=_fold_in,
    name=NAME,
    tag=NAME,  # the text of `jax.random.key_impl`, for implementations other than JAX's own
)


def key(seed: int) -> jax.Array:
    """Returns a typed key with the same random words as JAX's default key, computed faster on CPU.

    JAX's default is `jax.random.key(seed, impl="threefry2x32")`. Words are equal if `jax_threefry_partitionable` is
    True, which is also JAX's default.

    Args:
        seed: an integer that `jax.random.key` accepts.

    Returns:
        [] key. Every function of `jax.random` accepts the key except `poisson`, which needs
        `jax.random.wrap_key_data(jax.random.key_data(key), impl="threefry2x32")`. The last bits of floats may differ
        from the floats of JAX's key if XLA fuses operations differently.

    Examples:
        >>> import jax, jaxdp
        >>> bool(jax.random.uniform(jaxdp.random.key(0)) == jax.random.uniform(jax.random.key(0, impl="threefry2x32")))
        True
    """
    return jax.random.key(seed, impl=IMPLEMENTATION)


def key_from_data(data: ArrayLike, implementation: str) -> jax.Array:
    """Returns the key with the given words, like `wrap_key_data`, but also for this module's implementation.

    JAX has no public function to register the name of an implementation. So `jax.random.wrap_key_data` and
    `jax.random.key` reject the name "jaxdp_threefry2x32". They accept the object that `jax.random.key_impl` returns.

    Args:
        data: [..., words] uint32, from `jax.random.key_data`: two words for Threefry, four for "rbg".
        implementation: the text of `jax.random.key_impl`, which is "jaxdp_threefry2x32" for this module.

    Returns:
        [...] key.

    Raises:
        ValueError: if there is no such implementation.
        TypeError: if the last axis of data has another length than the implementation's keys.

    Examples:
        >>> import jax, jaxdp
        >>> key = jaxdp.random.key(3)
        >>> data, name = jax.random.key_data(key), str(jax.random.key_impl(key))
        >>> bool(jaxdp.random.key_from_data(data, name) == key), name
        (True, 'jaxdp_threefry2x32')
    """
    known_implementation = IMPLEMENTATION if implementation == NAME else implementation
    return jax.random.wrap_key_data(jnp.asarray(data, jnp.uint32), impl=known_implementation)


def fast_key(key: jax.Array) -> jax.Array:
    """Returns keys that give the same values as `key`, in this module's faster implementation if possible.

    Args:
        key: typed keys of any implementation and shape.

    Returns:
        Keys of this module's implementation if `key` has JAX's Threefry with the default, partitionable counters;
        otherwise `key` itself. Under `jax.debug_key_reuse(True)` the result is always `key` itself, because JAX's
        checker would consider the old and the new key distinct, and would not notice if both are used.
    """
    is_builtin = str(jax.random.key_impl(key)) == "threefry2x32"
    partitionable = getattr(jax.config, "jax_threefry_partitionable", True)
    if not (is_builtin and partitionable) or _key_reuse_is_checked():
        return key
    return jax.random.wrap_key_data(jax.random.key_data(key), impl=IMPLEMENTATION)


def two_uniforms(key: jax.Array, index: ArrayLike = 0, dtype: Any = float) -> jax.Array:
    """Returns two independent uniform variates, [2] in [0, 1). In float32 this takes a single hash.

    `jax.random.uniform(key, (2,))` needs two hashes, because it uses one word of each hash. Distinct values of `index`,
    [] integer >= 0, give independent variates. `dtype` is float32 or float64; by default JAX's default.
    """
    key, dtype = fast_key(key), jax.dtypes.canonicalize_dtype(dtype)
    child = jax.random.fold_in(key, index)
    if dtype != jnp.float32 or not has_words(key):
        return jax.random.uniform(child, (2,), dtype)
    words = jax.random.key_data(child)  # both words of one hash
    ones = lax.shift_right_logical(words, np.uint32(9)) | np.uint32(0x3F800000)  # 23 random bits: floats in [1, 2)
    return lax.bitcast_convert_type(ones, jnp.float32) - 1


def has_words(key: jax.Array) -> bool:
    """Returns whether this is a Threefry key (JAX's or this module's), so that a derived key is one hash, two words."""
    return str(jax.random.key_impl(key)) in (NAME, "threefry2x32")


def of_word_pairs(
    function: Callable[[jax.Array, jax.Array], tuple[jax.Array, jax.Array]],
    key: jax.Array,
    size: int,
    *,
    lanes_fast: bool = False,
) -> jax.Array:
    """Applies an elementwise function to independent pairs of random words.

    For a Threefry key, a pair consists of the two words of a hash. `jax.random.bits` would use one word of each hash.

    Args:
        function: ([size] uint32, [size] uint32) -> two [size] float32.
        key: [] typed PRNG key.
        size: number of pairs.
        lanes_fast: whether lanes become the fast axis even for more than 16 pairs.

    Returns:
        [2 * size] float32: all first results, then all second results.
    """
    key = fast_key(key)
    if str(jax.random.key_impl(key)) != NAME:
        words = _pairs_of_words(key, size)
        return jnp.concatenate(function(words[:, 0], words[:, 1]))

    def hash_pairs(key):
        return function(*_hash_index(key, lax.iota(jnp.uint32, size)))

    # XLA on CPU makes a loop for each array, and each loop would hash again, so both results are in one complex array.
    longest = size if lanes_fast else MAX_UNROLLED
    pairs = noinline(lambda key: lanes_last(lax.complex(*hash_pairs(lanes_last(key))), longest))

    def on_cpu(key):
        complex_pairs = pairs(key)
        return jnp.concatenate([complex_pairs.real, complex_pairs.imag])

    return by_platform(jax.random.key_data(key), cpu=on_cpu, default=lambda key: jnp.concatenate(hash_pairs(key)))


def word_pairs(key: jax.Array, size: int, longest: int = MAX_UNROLLED, *, blocks: range = range(1)) -> jax.Array:
    """Returns independent pairs of random words as one array, which `words_of_pairs` unpacks.

    Args:
        key: [] typed PRNG key.
        size: number of pairs in a block. For a Threefry key, the pairs of block 0 are the key's first derived keys.
        longest: maximum number of pairs in all blocks for which lanes, the batch axis of `jax.vmap`, are the fast axis.
        blocks: indices of blocks. For a Threefry key, the index of a block is the upper word of the hashed counters.

    Returns:
        [len(blocks) * size] complex64, computed in a separate kernel on CPU.
    """
    key = fast_key(key)
    if str(jax.random.key_impl(key)) != NAME:
        words = jnp.concatenate([_block_of_words(key, block, size) for block in blocks])
        return _as_pairs(*jnp.moveaxis(words, -1, 0))

    def hash_pairs(key: jax.Array) -> jax.Array:  # one array, as XLA would hash again for a second array
        low, high = lax.iota(jnp.uint32, size), np.uint32(blocks.start)
        if len(blocks) > 1:
            low = np.tile(np.arange(size, dtype=np.uint32), len(blocks))
            high = np.repeat(np.asarray(blocks, np.uint32), size)
        return lanes_last(_as_pairs(*hash_words(key[0], key[1], high, low)), longest)

    data = jax.random.key_data(key)
    return lanes_last(by_platform(data, cpu=noinline(hash_pairs), default=hash_pairs), longest)


def words_of_pairs(pairs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the two words ([...] uint32) of each pair, which are the bits of the real and the imaginary part."""
    first, second = (lax.bitcast_convert_type(part, jnp.uint32) for part in (lax.real(pairs), lax.imag(pairs)))
    return first, second


def _as_pairs(first: jax.Array, second: jax.Array) -> jax.Array:
    return lax.complex(*(lax.bitcast_convert_type(word, jnp.float32) for word in (first, second)))


def _pairs_of_words(key: jax.Array, size: int) -> jax.Array:
    """Returns random words, [size, 2] uint32. For a Threefry key, these are the key's first derived keys."""
    if has_words(key):
        return jax.random.key_data(jax.random.split(key, size))
    return jax.random.bits(key, (size, 2), jnp.uint32)


def _block_of_words(key: jax.Array, block: int, size: int) -> jax.Array:
    """Returns the random words ([size, 2] uint32) of the block of `word_pairs` with the given index."""
    if block == 0:
        return _pairs_of_words(key, size)
    if not has_words(key):
        return _pairs_of_words(key, (block + 1) * size)[block * size :]
    data = jax.random.key_data(key)
    return jnp.stack(hash_words(data[0], data[1], np.uint32(block), lax.iota(jnp.uint32, size)), axis=-1)


def pair_uniforms(key: jax.Array, size: int, dtype: Any = jnp.float32) -> jax.Array:
    """Draws [size] independent uniform variates in [0, 1). In float32, two variates come from each hash."""
    if dtype != jnp.float32:
        return jax.random.uniform(key, (size,), dtype)

    def uniforms(*words: jax.Array):
        ones = (lax.shift_right_logical(word, np.uint32(9)) | np.uint32(0x3F800000) for word in words)  # 23 random bits
        first, second = (lax.bitcast_convert_type(one, jnp.float32) - 1 for one in ones)
        return first, second

    return of_word_pairs(uniforms, key, -(-size // 2))[:size]


def _key_reuse_is_checked() -> bool:
    return getattr(jax.config, "jax_debug_key_reuse", False)

"""Breaks exact ties between arms or experts by a random order, which depends only on a lane's key.

Scores such as counts, means of binary rewards or totals without noise are equal with positive probability. Choosing the
first index would then favour the first arm, and results would depend on the order of the arms. The random order is
independent of all data, so it costs no privacy. A random word determines it. The word comes from a key that nothing
else uses (`own_word`), from a key that also draws noise (`word_beside`), or from `init` for choices without a key.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.random.key_bits import GOLDEN, mix, own_word
from jaxdp.random.threefry import fast_key

CHILD = np.uint32(0xFFFFFFFF)  # index of the derived key for ties; arrays of noise are shorter


def ranks(word: jax.Array, size: int) -> jax.Array:
    """Returns a random order of entries, as a number for each entry.

    Args:
        word: [] uint32, a random word; `own_word` makes it from a key.
        size: number of entries, in [1, 2^31).

    Returns:
        [size] int32 >= 0. All orders are equally likely, up to a relative 2^-12. Two entries have equal numbers with
        probability 2^-31.

    Source:
        Finalizer of MurmurHash3, applied to word + index * (2^32 / golden ratio), which are all different.
    """
    return rank(word, lax.iota(jnp.uint32, size))


def rank(word: jax.Array, index: jax.Array | int) -> jax.Array:
    """Returns the numbers that `ranks` gives to single entries; word and index are [...] uint32."""
    words = mix(word + GOLDEN * jnp.asarray(index, jnp.uint32))
    return lax.shift_right_logical(words, np.uint32(1)).astype(jnp.int32)


def word_beside(key: jax.Array) -> jax.Array:
    """Returns one random word, [] uint32, of a key that also draws noise.

    Noise takes the key's first hashes, one an entry, or children of small numbers; the word comes from its last child.
    """
    return own_word(jax.random.fold_in(fast_key(key), CHILD))


def largest(scores: jax.Array, order: jax.Array) -> jax.Array:
    """Returns the index of the largest score; among equal ones, the one with the largest number in `order`.

    Args:
        scores: [..., n] float or integer, without NaN.
        order: [n] or [..., n] int32 >= 0, by `ranks`. If scores and numbers are equal, the first index is returned.

    Returns:
        [...] int32 in [0, n).

    Examples:
        >>> import jax
        >>> scores = jnp.array([1.0, 3.0, 3.0])
        >>> keys = jax.random.split(jax.random.key(0), 1000)
        >>> found = jax.vmap(lambda key: largest(scores, ranks(own_word(key), 3)))(keys)
        >>> found.min().item(), found.max().item(), bool(abs(found.mean() - 1.5) < 0.05)
        (1, 2, True)
    """
    # A single reduction reads each score once. A compiler may compute scores again at each use, with other last bits;
    # then no score may be equal to the maximum.
    is_float = jnp.issubdtype(scores.dtype, jnp.floating)
    least = jnp.asarray(-jnp.inf if is_float else jnp.iinfo(scores.dtype).min, scores.dtype)
    every = lax.broadcasted_iota(jnp.int32, scores.shape, scores.ndim - 1)
    entries = scores, jnp.broadcast_to(order, scores.shape), every
    return lax.reduce(entries, (least, jnp.int32(-1), jnp.int32(0)), _larger, [scores.ndim - 1])[2]


def _larger(one: tuple[jax.Array, ...], other: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    """Returns the entry with the larger score; if equal, the larger number; if equal, the smaller index."""
    (score, number, index), (its_score, its_number, its_index) = one, other
    is_first = (its_number == number) & (its_index < index)
    is_other = (its_score > score) | ((its_score == score) & ((its_number > number) | is_first))
    return tuple(lax.select(is_other, other_entry, entry) for entry, other_entry in zip(one, other, strict=True))

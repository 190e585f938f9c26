"""Breaks exact ties between arms or experts by a random order that depends only on a lane's key.

Scores such as counts, means of binary rewards or noiseless totals are equal with positive probability. If the first
index were chosen, ties would favour the first arm, and results would depend on the order of the arms. The random order
is independent of all data, so it costs no privacy. The order is determined by a random word. The word comes from a key
that is not used for anything else (`own_word`), from a key that also draws noise (`word_beside`), or from `init` for
choices without a key.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.random.key_bits import GOLDEN, mix, own_word
from jaxdp.random.threefry import fast_key

CHILD = np.uint32(0xFFFFFFFF)  # index of the child key for ties; arrays of noise are too short to use this index


def ranks(word: jax.Array, size: int) -> jax.Array:
    """Returns a random number for each entry. The numbers determine a random order of the entries.

    Args:
        word: [] uint32, a random word; `own_word` makes it from a key.
        size: number of entries, in [1, 2^31).

    Returns:
        [size] int32 >= 0. All orders of at most 3 entries are equally likely up to a relative error of 2^-12, and all
        orders of at most 5 entries up to 2^-9. From 13 entries on, some orders never occur, because a word has 32 bits.
        On average over all pairs, two entries have equal numbers with probability about 2^-32.

    Source:
        Finalizer of MurmurHash3, applied to word + index * (2^32 / golden ratio). These inputs are distinct.
    """
    return rank(word, lax.iota(jnp.uint32, size))


def rank(word: jax.Array, index: jax.Array | int) -> jax.Array:
    """Returns the entries ([...] int32) of `ranks(word, size)` at indices. Both arguments are [...] uint32."""
    words = mix(word + GOLDEN * jnp.asarray(index, jnp.uint32))
    return lax.shift_right_logical(words, np.uint32(1)).astype(jnp.int32)


def word_beside(key: jax.Array) -> jax.Array:
    """Returns a random word ([] uint32) from a key that also draws noise.

    Noise uses the key's first hashes, one for each entry, or child keys with small indices. The word comes from the
    child key with the maximum index.
    """
    return own_word(jax.random.fold_in(fast_key(key), CHILD))


def largest(scores: jax.Array, order: jax.Array) -> jax.Array:
    """Returns the index of the largest score. Among equal scores, the score with the largest `order` wins.

    Args:
        scores: [..., n] float or integer, without NaN.
        order: [n] or [..., n] int32 >= 0, from `ranks`. If scores and orders are both equal, the first index is
            returned.

    Returns:
        [...] int32 in [0, n).

    Examples:
        >>> import jax
        >>> scores = jnp.array([1.0, 3.0, 3.0])
        >>> keys = jax.random.split(jax.random.key(0), 1000)
        >>> winners = jax.vmap(lambda key: largest(scores, ranks(own_word(key), 3)))(keys)
        >>> winners.min().item(), winners.max().item(), bool(abs(winners.mean() - 1.5) < 0.05)
        (1, 2, True)
    """
    # A single reduction reads each score only once. Otherwise a compiler may recompute scores at each use, with other
    # last bits, and possibly no score would equal the maximum.
    is_float = jnp.issubdtype(scores.dtype, jnp.floating)
    lowest = jnp.asarray(-jnp.inf if is_float else jnp.iinfo(scores.dtype).min, scores.dtype)
    indices = lax.broadcasted_iota(jnp.int32, scores.shape, scores.ndim - 1)
    entries = scores, jnp.broadcast_to(order, scores.shape), indices
    return lax.reduce(entries, (lowest, jnp.int32(-1), jnp.int32(0)), _larger, [scores.ndim - 1])[2]


def _larger(one: tuple[jax.Array, ...], other: tuple[jax.Array, ...]) -> tuple[jax.Array, ...]:
    """Returns the entry with the larger score; among equal scores the larger number, then the smaller index."""
    (score, number, index), (other_score, other_number, other_index) = one, other
    is_first = (other_number == number) & (other_index < index)
    is_other = (other_score > score) | ((other_score == score) & ((other_number > number) | is_first))
    return tuple(lax.select(is_other, other_entry, entry) for entry, other_entry in zip(one, other, strict=True))

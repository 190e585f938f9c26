"""Words of simulated worlds: mixed from those of a key, which is several times cheaper than hashing."""

import jax
import jax.numpy as jnp
from jax import lax

from jaxdp.random.own_words import GOLDEN, mixed
from jaxdp.random.threefry import has_words


def world_words(key: jax.Array, size: int) -> jax.Array:
    """Words for what a simulated world draws in one round, from the key of that round.

    The key of a round, which `jax.random.fold_in` has made, is 64 pseudo-random bits. `jax.random.bits` spends a
    Threefry hash on each word drawn from it, about 80 operations; these words take 18: mixed(b ^ mixed(a + i c)) for
    the key's words a and b and a constant c. Where a and b are uniform, so is each word, and two words are mixed(u) and
    mixed(u ^ d) with u uniform and independent of d = mixed(a + i c) ^ mixed(a + j c): all pairs would be equally
    likely if d were uniform, and mixing leaves it so up to what a random function would. Of three and more words
    nothing is proved; their joint laws are tested.

    For simulated worlds; never for the noise that privacy rests on, nor for what a learner draws. To draw anything
    else from the key, or to derive keys from it, would be to use it twice.

    Args:
        key: [] typed PRNG key, which nothing else uses.
        size: number of words, >= 0.

    Returns:
        [size] uint32. Of fewer words from the same key it is the beginning. Of a key that is not Threefry's,
        `jax.random.bits`.

    Source:
        The finalizer of MurmurHash3 (Appleby, 2011), twice, over a Weyl sequence, as in SplitMix (Steele, Lea & Flood,
        2014).

    Examples:
        >>> import jax
        >>> words = world_words(jax.random.key(0), 10_000)
        >>> bool(abs(words.astype(float).mean() / 2**32 - 0.5) < 0.01)
        True
    """
    if not has_words(key):
        return jax.random.bits(key, (size,), jnp.uint32)
    return words_of(jax.random.key_data(key), lax.iota(jnp.uint32, size))


def words_of(data: jax.Array, index: jax.Array) -> jax.Array:
    """The words of `world_words` at some indices, for use within a kernel.

    Args:
        data: [2] uint32, the words of a key.
        index: [...] uint32.
    """
    return mixed(data[1] ^ mixed(data[0] + index * GOLDEN))

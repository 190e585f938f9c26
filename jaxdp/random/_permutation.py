"""Computes entries of a random permutation by a keyed bijection, without storing the permutation."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.random.key_bits import GOLDEN, mix

ROUNDS = 12
FEW, MORE_ROUNDS = 1 << 12, 24  # permutations of at most FEW entries need more rounds to mix


def permutation_entry(words: jax.Array, index: jax.Array, size: int) -> jax.Array:
    """Returns entry `index` of the random permutation of 0, ..., size - 1 that the words determine.

    A stored permutation takes `size` words in every lane, and a simulated world would copy these words in each round.
    This function computes an entry when it is needed. Use it for simulated worlds, but not for randomness on which
    privacy depends.

    Args:
        words: [2] uint32, random, independent, and drawn afresh for each permutation. If two permutations have equal
            second words, and first words that differ by a small number, one permutation is nearly a shift of the other.
            With 1,000 entries, only about half of the entries are shifted.
        index: [] integer; clipped to [0, size).
        size: in [1, 2^31).

    Returns:
        [] int32 in [0, size); distinct indices give distinct values.

    Source:
        Black & Rogaway (2002), the generalized Feistel cipher with cycle walking: index = left + a * right, with left
        in Z_a, right in Z_b and a * b >= size. Each round adds a function of one half to the other half; a result >=
        size is encrypted again. The functions are finalizers of MurmurHash3, keyed by the words.

    Deviations:
        There are 12 rounds, or 24 rounds for at most 4096 entries. With these numbers of rounds, tests find that all
        orders of few entries are equally likely. a is even, because all permutations would be even if both a and b were
        odd.

    Examples:
        >>> import jax
        >>> words = jax.random.bits(jax.random.key(0), (2,), "uint32")
        >>> sorted(int(permutation_entry(words, index, 5)) for index in range(5))
        [0, 1, 2, 3, 4]
    """
    first = 2 * math.ceil(math.sqrt(size) / 2)
    second = -(-size // first)

    def half(step: int, other: jax.Array, modulus: int) -> jax.Array:
        keyed = other + words[0] + np.uint32(step * int(GOLDEN) % 2**32)
        return mix(mix(keyed) ^ words[1]) % np.uint32(modulus)

    def encrypt(start: jax.Array) -> jax.Array:
        left, right = start % np.uint32(first), start // np.uint32(first)
        for step in range(0, MORE_ROUNDS if size <= FEW else ROUNDS, 2):
            left = (left + half(step, right, first)) % np.uint32(first)
            right = (right + half(step + 1, left, second)) % np.uint32(second)
        return left + right * np.uint32(first)

    start = jnp.clip(index, 0, size - 1).astype(jnp.uint32)
    if first * second == size:
        return encrypt(start).astype(jnp.int32)
    # The loop also performs the first step of every lane, so that the program contains the cipher only once.
    entry, _ = jax.lax.while_loop(
        lambda state: state[1] | (state[0] >= np.uint32(size)),
        lambda state: (encrypt(state[0]), jnp.zeros_like(state[1])),
        (start, jnp.ones_like(start, bool)),
    )
    return entry.astype(jnp.int32)

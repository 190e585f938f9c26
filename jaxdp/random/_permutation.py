"""Entries of a random permutation that is never stored: a keyed bijection."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.random.key_bits import GOLDEN, mix

ROUNDS = 12
FEW, MORE_ROUNDS = 1 << 12, 24  # a round moves few entries less


def permutation_entry(words: jax.Array, index: jax.Array, size: int) -> jax.Array:
    """Returns entry `index` of the random permutation of 0, ..., size - 1 that the words determine.

    For orders that many lanes draw, each its own: a permutation in memory takes `size` words a lane, and a world that
    holds it copies them from round to round. Here an entry is computed where it is read. For simulated worlds; not for
    randomness that privacy depends on.

    Args:
        words: [2] uint32, random and independent; fresh ones for each permutation. If the first words differ by a small
            number, the permutations differ by little more than a shift.
        index: [] integer; clipped to [0, size).
        size: in [1, 2^31).

    Returns:
        [] int32 in [0, size): over all indices each value once.

    Source:
        Black & Rogaway (2002), the generalized Feistel cipher with cycle walking: index = left + a right with left in
        Z_a, right in Z_b and a b >= size. Either half in turn is moved by a function of the other; a result >= size
        goes in once more. The functions are finalizers of MurmurHash3, keyed by the words.

    Deviations:
        12 rounds, and 24 for up to 4096 entries; then all orders of few entries are equally likely, as far as the tests
        show. a is even: with two odd numbers only even permutations would result.

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
    # A first step for every lane, in a loop that holds the cipher once.
    entry, _ = jax.lax.while_loop(
        lambda state: state[1] | (state[0] >= np.uint32(size)),
        lambda state: (encrypt(state[0]), jnp.zeros_like(state[1])),
        (start, jnp.ones_like(start, bool)),
    )
    return entry.astype(jnp.int32)

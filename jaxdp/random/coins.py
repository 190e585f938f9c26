"""Independent events of given probabilities, two of each hash."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.numerics.kernels import lanes_last, own_kernel
from jaxdp.random.threefry import NAME, fast, hash_words

DIGITS = 23  # of a uniform variate in 32 bits


def coins(key: jax.Array, probabilities: jax.Array) -> jax.Array:
    """Ones with these probabilities, else zeros; of one key, a smaller probability never gives a larger number.

    In 32 bits an entry of the second half shares its hash with one of the first half, and uses the hash's other word:
    `jax.random.uniform` uses one word of each hash. For simulated worlds; not for noise that privacy rests on.

    Args:
        key: [] typed PRNG key.
        probabilities: [n] float in [0, 1], n >= 1; may be traced.

    Returns:
        [n] of the same dtype. On CPU lanes of `jax.vmap` are the fast axis where n <= 16.

    Deviations:
        A probability is a multiple of 2^-23 in float32.

    Examples:
        >>> print(coins(jax.random.key(0), jnp.array([0.0, 1.0, 0.0, 1.0, 1.0], jnp.float32)))
        [0. 1. 0. 1. 1.]
    """
    key, dtype, size = fast(key), probabilities.dtype, len(probabilities)
    if dtype != jnp.float32 or str(jax.random.key_impl(key)) not in (NAME, "threefry2x32"):
        return (jax.random.uniform(key, (size,), dtype) < probabilities).astype(dtype)
    half = (size + 1) // 2
    limits = jnp.ceil(probabilities * np.float32(2**DIGITS)).astype(jnp.uint32)
    limits = jnp.pad(limits, (0, 2 * half - size))
    # One result of the kernel: of two XLA on CPU would make two loops, and compute every hash twice.
    events = own_kernel(_events, lanes_last(jax.random.key_data(key)), lanes_last(limits))
    both = jnp.concatenate([events & 1, lax.shift_right_logical(events, np.uint32(1))])
    return lanes_last(both[:size].astype(dtype))


def _events(words: jax.Array, limits: jax.Array) -> jax.Array:
    """[n / 2] uint32, of each hash two bits: whether the first digits of either word are below a limit.

    Args:
        words: [2] uint32, of a key.
        limits: [n] uint32, at most 2^23.
    """
    words, limits = lanes_last(words), lanes_last(limits)
    half = len(limits) // 2
    low, high = (
        # The sign of a difference, in words of one width, as vector units have them.
        lax.shift_right_logical(lax.shift_right_logical(word, np.uint32(32 - DIGITS)) - limit, np.uint32(31))
        for word, limit in zip(
            hash_words(words[0], words[1], np.uint32(0), lax.iota(jnp.uint32, half)),
            (limits[:half], limits[half:]),
            strict=True,
        )
    )
    return lanes_last(low | lax.shift_left(high, np.uint32(1)))

"""Real noise rounded down to integers, from words of 64 bits: traced in 64 bits.

A logarithm in float64 moves the place where noise passes from one integer k to the next by k 2^-52 of an integer. So
Laplace noise has two digits, each from a logarithm of its own. A normal variate of standard deviation 2^24 is two, of
2^14 multiples of 2^10 and of 2^11. The total variation between the program's distribution and the real one, also at
outputs e^epsilon times less likely, is then below 1e-9 for each number. Noise ends at 43 scales, and at 9.3 standard
deviations.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.random.threefry import Words, from_words

COARSE = 2.0**10  # unit of the first digit of normal variates


def laplace_of(words: Words, scale: jax.Array) -> jax.Array:
    """Returns floor(Laplace(scale)) of words, int64.

    Args:
        words: of `from_words`.
        scale: [] float64 in (0, 2^56].
    """
    high, low, base = exponential_digits(words, scale)
    number = (high * base + low).astype(jnp.int64)
    return number ^ -(words(0)[1] & 1).astype(jnp.int64)  # -1 - number has all bits turned


def exponential_digits(words: Words, scale: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns floor(scale * exponential variate) as high * base + low, float64.

    How many times a base is in the variate, and what is left, are independent; each is from a logarithm of its own,
    which has few integers to tell apart.
    """
    base = jnp.maximum(2 * power_below(jnp.sqrt(scale)), 1)
    high = jnp.floor(_exponential(words(0)) * (scale / base))
    low = jnp.floor(-scale * jnp.log1p(_uniform(words(1)) * jnp.expm1(-base / scale)))
    return high, jnp.clip(low, 0, base - 1), base


def power_below(value: jax.Array) -> jax.Array:
    """Returns the largest power of two that is at most a normal number > 0, [] float64."""
    exponent = lax.bitcast_convert_type(value, jnp.int64) & (0x7FF << 52)
    return lax.bitcast_convert_type(exponent, jnp.float64)


def normal_of(words: Words, stddev: jax.Array, coarse: jax.Array | float = COARSE) -> jax.Array:
    """Returns a normal variate, rounded to an integer, int64.

    Args:
        words: of `from_words`.
        stddev: [] float64, at least 2^24; up to 2^26 for the default unit.
        coarse: unit of the first digit, a power of two about the root of stddev / 16. The second digit's standard
            deviation is twice as large.
    """
    first, second = _normal_pair(words)
    fine = 2 * coarse
    rest = jnp.sqrt((stddev - fine) * (stddev + fine))
    return (coarse * jnp.round(rest * (1 / coarse) * first) + jnp.floor(fine * second)).astype(jnp.int64)


def directed(key: jax.Array, dim: int) -> jax.Array:
    """Draws [dim] float64 of the density exp(-|z|), up to a constant: a length from Gamma(dim), and a direction."""
    if dim == 0:
        return jnp.zeros((0,), jnp.float64)
    if dim == 1:
        return laplaces(key, (1,))
    key_length, key_direction = jax.random.split(key)
    length = jnp.sum(exponentials(key_length, (dim,)))
    direction = from_words(lambda words: _normal_pair(words)[0], key_direction, (dim,))
    return length * direction / jnp.sqrt(jnp.sum(direction**2))


def exponentials(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws exponential variates of mean 1, [*shape] float64."""
    return from_words(lambda words: _exponential(words(0)), key, shape)


def laplaces(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws Laplace variates of scale 1, [*shape] float64."""

    def signed(words: Words) -> jax.Array:
        size = _exponential(words(0))
        return jnp.where(words(0)[1] & 1 == 1, -size, size)

    return from_words(signed, key, shape)


def gumbels(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws standard Gumbel variates, [*shape] float64."""
    return from_words(lambda words: -jnp.log(_exponential(words(0))), key, shape)


def _uniform(pair: tuple[jax.Array, jax.Array]) -> jax.Array:
    """Uniform variates in (0, 1) of 63 bits, from both words of a hash but the last bit."""
    high, low = (word.astype(jnp.float64) for word in (pair[0], pair[1] >> np.uint32(1)))
    return high * 2.0**-32 + (low + 0.5) * 2.0**-63


def _exponential(pair: tuple[jax.Array, jax.Array]) -> jax.Array:
    return -jnp.log(_uniform(pair))


def _normal_pair(words: Words) -> tuple[jax.Array, jax.Array]:
    """Two independent standard normal variates.

    Source:
        Box & Muller (1958).
    """
    radius, angle = jnp.sqrt(2 * _exponential(words(0))), _uniform(words(1)) * (2 * np.pi)
    return radius * jnp.cos(angle), radius * jnp.sin(angle)

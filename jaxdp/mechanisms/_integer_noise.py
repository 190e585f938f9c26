"""Real noise rounded to integers, in float64, computed from pairs of 32-bit words. Call all functions in 64-bit mode.

The rounding of a uniform float64, of its logarithm and of the product with the scale moves the boundary between noise k
and noise k + 1 by at most scale * 2^-52 + k * 2^-51.4. So Laplace noise of a scale up to 2^18 is computed from one
logarithm. At a larger scale the integer has two digits, high * base + low (`two_digits`), and each digit is drawn from
a separate pair. Normal noise of standard deviation 2^24 is 2^10 times a rounded variate of standard deviation about
2^14, plus a rounded variate of standard deviation 2^11. `docs/proofs/numerical_delta.md` bounds the delta that this
arithmetic adds: less than 2e-8 for each number with Laplace noise, up to epsilon = 10. No noise beyond 44.4 scales or
9.5 standard deviations is drawn. Sums of integers that float64 cannot represent are rounded once, which is
post-processing.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.numerics.kernels import MAX_UNROLLED, any_lane, lanes_last, own_kernel
from jaxdp.numerics.platforms import by_platform
from jaxdp.random.threefry import word_pairs, words_of_pairs

ONE_DIGIT = 2.0**18  # largest scale of Laplace noise that is computed from one logarithm
FIRST_SCALE = 2.0**16  # the first of two digits has a scale of FIRST_SCALE to 2 * FIRST_SCALE
ROOT = 0x3FE6A09E667F3BCD  # the bits of sqrt(1/2)
INTEGERS = 2.0**52  # the lower bits of a float64 in [2^52, 2^53) are an integer
# log(1 + x) / x for x from sqrt(1/2) - 1 to sqrt(2) - 1, interpolated at Chebyshev points; log(1 + x) has error 2^-53
LOG_TERMS = (
    1.0,
    -0.49999999999998423,
    0.33333333333330895,
    -0.25000000000777267,
    0.20000000001294857,
    -0.1666666655508251,
    0.1428571405650766,
    -0.12500007138306524,
    0.1111112912931056,
    -0.09999762882994195,
    0.09090178225666622,
    -0.08337564988216659,
    0.07708636485645233,
    -0.0710625201012918,
    0.06466440762038246,
    -0.06309482400869237,
    0.07094564614864918,
    -0.06698124444485988,
    0.030733275393315003,
)
# sin(pi x / 2) / x and cos(pi x / 2) in x^2, for x from -1/2 to 1/2; error below 2^-53
SINE_TERMS = (
    1.5707963267948966,
    -0.6459640975062443,
    0.07969262624604301,
    -0.004681754132340976,
    0.0001604411507421909,
    -3.59864335298231e-06,
    5.633933781537854e-08,
)
COSINE_TERMS = (
    1.0,
    -1.2337005501361513,
    0.25366950789986475,
    -0.02086348073494657,
    0.000919259950041661,
    -2.520013526428479e-05,
    4.6552961874867623e-07,
)


def laplace_of(function: Callable[..., jax.Array], key: jax.Array, shape: tuple[int, ...], *operands: Any) -> jax.Array:
    """Applies an elementwise function to floor(Laplace(scale)) noise, in one kernel.

    Args:
        function: (noise, scale, *operands) -> [size]; noise is [size] integers in float64.
        key: a PRNG key.
        shape: shape of the result.
        operands: scale, [] float64 in (0, 2^47], and trees of [] or [size] arrays.
    """

    def with_sign(pairs: jax.Array, number: jax.Array, scale: jax.Array, *operands: Any) -> jax.Array:
        return function(_with_sign(pairs, number), scale, *operands)

    return _one_sided(with_sign, key, math.prod(shape), *operands).reshape(shape)


def geometric_of(
    function: Callable[..., jax.Array], key: jax.Array, shape: tuple[int, ...], *operands: Any
) -> jax.Array:
    """Applies an elementwise function to two-sided geometric noise: the difference of two geometric variates.

    The noise is k with a probability proportional to exp(-|k| / scale). Arguments are as for `laplace_of`; the scale
    may also be 0, for no noise.
    """
    size, (key_up, key_down) = math.prod(shape), jax.random.split(key)
    up = _one_sided(lambda _, number, scale: number, key_up, size, operands[0])

    def difference(_: jax.Array, down: jax.Array, scale: jax.Array, up: jax.Array, *operands: Any) -> jax.Array:
        return function(up - down, scale, *operands)

    return _one_sided(difference, key_down, size, operands[0], up, *operands[1:]).reshape(shape)


def _one_sided(function: Callable[..., jax.Array], key: jax.Array, size: int, *operands: Any) -> jax.Array:
    """Draws [size] geometric numbers, floor(scale * exponential variate), and applies the elementwise `function`.

    The function's arguments are (pairs of random words, geometric number, scale, *other operands); `scale` is
    operands[0].
    """

    def with_one_digit() -> jax.Array:
        def apply(pairs: jax.Array, scale: jax.Array, *operands: Any) -> jax.Array:
            return function(pairs, one_digit(pairs, scale), scale, *operands)

        return _kernel(apply, word_pairs(key, size), *operands)

    def with_two_digits() -> jax.Array:
        def apply(pairs: jax.Array, more: jax.Array, scale: jax.Array, *operands: Any) -> jax.Array:
            high, low, base = two_digits(pairs, more, scale)
            number = jnp.where(scale > ONE_DIGIT, high * base + low, one_digit(pairs, scale))
            return function(pairs, number, scale, *operands)

        return _of_two_pairs(apply, key, size, *operands)

    def by_scale() -> jax.Array:
        return lax.cond(any_lane(operands[0] > ONE_DIGIT), with_two_digits, with_one_digit)

    return by_platform(cpu=by_scale, default=with_two_digits)  # on a GPU a branch costs more than the second digit


def normal_of(
    function: Callable[..., jax.Array], key: jax.Array, shape: tuple[int, ...], *operands: Any, lanes_fast: bool = False
) -> jax.Array:
    """Applies an elementwise function to normal noise rounded to integers: function(noise, *operands), in one kernel.

    The first of `operands` is the standard deviation, [] or [size] float64, at least 2^24. On CPU the batch axis of
    `jax.vmap` is the fast axis (see `lanes_last`): always if `lanes_fast`, otherwise for up to MAX_UNROLLED numbers.
    """
    # The noise is the sum of a multiple of `coarse` and a part of standard deviation 2 * coarse; `coarse` is a power of
    # two near sqrt(stddev) / 4.
    coarse = power_below(jnp.sqrt(operands[0])) / 4
    times = jnp.sqrt((operands[0] - 2 * coarse) * (operands[0] + 2 * coarse)) / coarse

    def apply(pairs: jax.Array, more: jax.Array, coarse: jax.Array, times: jax.Array, *operands: Any) -> jax.Array:
        first, second = _normal_pair(pairs, more)
        return function(coarse * jnp.round(times * first) + jnp.floor(2 * coarse * second), *operands)

    numbers = _of_two_pairs(apply, key, math.prod(shape), coarse, times, *operands, lanes_fast=lanes_fast)
    return numbers.reshape(shape)


def power_below(value: jax.Array) -> jax.Array:
    """Returns the largest power of two that is at most `value`, for float64 > 0 that are not subnormal."""
    exponent = lax.bitcast_convert_type(value, jnp.int64) & (0x7FF << 52)
    return lax.bitcast_convert_type(exponent, jnp.float64)


def draw_isotropic(key: jax.Array, dim: int) -> jax.Array:
    """Draws [dim] float64 with density proportional to exp(-|z|): a Gamma(dim) norm times a random direction."""
    if dim == 0:
        return jnp.zeros((0,), jnp.float64)
    if dim == 1:
        return laplaces(key, (1,))
    key_length, key_direction = jax.random.split(key)
    length = jnp.sum(exponentials(key_length, (dim,)))
    direction = _of_two_pairs(lambda *pairs: _normal_pair(*pairs)[0], key_direction, dim)
    return length * direction / jnp.sqrt(jnp.sum(direction**2))


def exponentials(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws exponential variates of mean 1, [*shape] float64."""
    return _kernel(_exponential, word_pairs(key, math.prod(shape))).reshape(shape)


def laplaces(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws Laplace variates of scale 1, [*shape] float64."""
    return _kernel(lambda pairs: _sign(pairs) * _exponential(pairs), word_pairs(key, math.prod(shape))).reshape(shape)


def gumbels(key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
    """Draws standard Gumbel variates, [*shape] float64."""
    return _kernel(lambda pairs: -log(_exponential(pairs)), word_pairs(key, math.prod(shape))).reshape(shape)


def log(values: jax.Array) -> jax.Array:
    """Returns the logarithm of float64 > 0 that are not subnormal, with an error of about 2^-52 |log| + 2^-53.

    XLA on CPU vectorises these operations, but not its own float64 logarithm.
    """
    bits = lax.bitcast_convert_type(values, jnp.uint64) + np.uint64(0x3FF0000000000000 - ROOT)
    # the number is 2^exponent times a number in [sqrt(1/2), sqrt(2))
    exponent = lax.bitcast_convert_type((bits >> 52) | np.float64(INTEGERS).view(np.uint64), jnp.float64) - (
        INTEGERS + 1023
    )
    beyond = lax.bitcast_convert_type((bits & np.uint64(2**52 - 1)) + np.uint64(ROOT), jnp.float64) - 1
    return exponent * math.log(2) + beyond * _polynomial(LOG_TERMS, beyond)


def one_digit(pairs: jax.Array, scale: jax.Array) -> jax.Array:
    """Returns floor(scale * exponential variate) ([size] float64) from `word_pairs`."""
    return jnp.floor(_exponential(pairs) * scale)


def two_digits(pairs: jax.Array, more: jax.Array, scale: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns floor(scale * exponential variate) as high * base + low, float64, for scale >= 2^17."""
    # The quotient of the scaled variate by base and the remainder are independent. The remainder is
    # -(base / t) * log(1 - u * (1 - e^-t)) for a uniform u, which is base * u minus a correction below base * t / 8
    # (t is at most 2^-16).
    base = power_below(scale) * (1 / FIRST_SCALE)
    t = base / scale
    high = jnp.floor(_exponential(pairs) * (scale / base))
    upper, lower = _halves(more)
    times = upper * (base * 2.0**-32)  # exact, and so is its fractional part
    low_whole = jnp.floor(times)
    u = _uniform(more)
    average = 1 - t * (1 / 2 - t * (1 / 6))  # (1 - e^-t) / t, the mean of e^-s over s in [0, t]
    part = u * (t * average)
    correction = base * t * u * ((1 / 2 - t * (1 / 6)) - u * average**2 * (1 / 2 + part * (1 / 3 + part * (1 / 4))))
    low = low_whole + jnp.floor((times - low_whole) + lower * (base * 2.0**-64) - correction)
    return high, jnp.clip(low, 0, base - 1), base


def _of_two_pairs(
    function: Callable[..., jax.Array], key: jax.Array, size: int, *operands: Any, lanes_fast: bool = False
) -> jax.Array:
    """Returns function(pairs, more pairs, *operands) ([size]) with two pairs of random words for each number."""
    longest = size if lanes_fast else MAX_UNROLLED

    def split_pairs(pairs: jax.Array, *operands: Any) -> jax.Array:
        return function(pairs[:size], pairs[size:], *operands)

    def at_once() -> jax.Array:
        pairs = word_pairs(key, size, 2 * longest, blocks=range(2))
        return _kernel(split_pairs, pairs, *operands, longest=longest, pairs=2)

    def inline() -> jax.Array:  # a GPU computes each word at its use
        return function(word_pairs(key, size), word_pairs(key, size, blocks=range(1, 2)), *operands)

    return by_platform(cpu=at_once, default=inline)


def _with_sign(pairs: jax.Array, number: jax.Array) -> jax.Array:
    """Returns each number k as k or as -1 - k, with a random sign."""
    return _sign(pairs) * (number + 0.5) - 0.5


def _sign(pairs: jax.Array) -> jax.Array:
    """Returns 1 or -1 for each pair, from the last bit of its second word."""
    bit = words_of_pairs(pairs)[1].astype(jnp.uint64) << 63
    return lax.bitcast_convert_type(bit | np.float64(1).view(np.uint64), jnp.float64)


def _halves(pairs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns both words of each pair as float64; the last bit of the second word is set."""
    first, second = words_of_pairs(pairs)
    return first.astype(jnp.float64), (second | np.uint32(1)).astype(jnp.float64)


def _uniform(pairs: jax.Array) -> jax.Array:
    """Returns uniform variates in (0, 1), computed from 63 random bits and rounded to a float64 in (0, 1]."""
    upper, lower = _halves(pairs)
    return upper * 2.0**-32 + lower * 2.0**-64


def _exponential(pairs: jax.Array) -> jax.Array:
    return -log(_uniform(pairs))


def _normal_pair(pairs: jax.Array, more: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns two independent standard normal variates, from a radius, an angle in a quarter, and the quarter's bits.

    Source:
        Box & Muller (1958).
    """
    radius = jnp.sqrt(2 * _exponential(pairs))
    quarter, bits = _quarter(more)
    square = quarter * quarter
    sine, cosine = quarter * _polynomial(SINE_TERMS, square), _polynomial(COSINE_TERMS, square)
    is_turned, is_opposite = (bits & 1) != 0, (bits & 2) != 0
    radius = jnp.where(is_opposite, -radius, radius)
    return radius * jnp.where(is_turned, -sine, cosine), radius * jnp.where(is_turned, cosine, sine)


def _quarter(pairs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns rounded uniform variates in [-1/2, 1/2] from 62 random bits, and words with the two other bits."""
    first, second = words_of_pairs(pairs)
    lower = ((second | np.uint32(3)) ^ np.uint32(1)).astype(jnp.float64)
    return first.astype(jnp.int32).astype(jnp.float64) * 2.0**-32 + lower * 2.0**-64, second


def _polynomial(terms: Sequence[float], x: jax.Array) -> jax.Array:
    """Returns the sum of terms[k] x^k."""
    value = jnp.float64(terms[-1])
    for term in terms[-2::-1]:
        value = value * x + term
    return value


def _kernel(
    function: Callable[..., jax.Array],
    pairs_of_words: jax.Array,
    *operands: Any,
    longest: int = MAX_UNROLLED,
    pairs: int = 1,
) -> jax.Array:
    """Runs an elementwise function as one CPU kernel; with at most `longest` numbers, lanes are the fast axis."""

    def inside(words: jax.Array, *operands: Any) -> jax.Array:
        inputs = jax.tree.map(lambda operand: lanes_last(operand, longest), operands)
        return lanes_last(function(lanes_last(words, pairs * longest), *inputs), longest)

    return lanes_last(own_kernel(inside, pairs_of_words, *operands), longest)

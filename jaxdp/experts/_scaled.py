"""Positive numbers of any magnitude: a mantissa in [1, 2), and a separate power of two for every entry of an array."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

NOTHING = -(2**30)  # the power that represents 0; a sum of two powers does not overflow
LARGEST = 2.0**27  # largest exponent of a factor exp(-values); the sum of a few powers then does not overflow
_LAYOUT = {4: (np.int32, 23, 127), 8: (np.int64, 52, 1023)}  # by bytes: integer dtype, mantissa bits, exponent bias
_LN2 = {
    4: (0.693359375, -2.12194440e-4),
    8: (0.6931471803691238, 1.9082149292705877e-10),
}  # ln 2 as a number with few bits, plus a remainder
TERMS, GENTLE_TERMS = 9, 6  # numbers of terms in the series of exp(x) - 1, for float32


class Scaled(NamedTuple):
    """The numbers mantissa * 2^power.

    Attributes:
        mantissa: [...] float in [1, 2).
        power: [...] int32 >= NOTHING, which represents 0.
    """

    mantissa: jax.Array
    power: jax.Array


def nothing(shape: tuple[int, ...], dtype: np.dtype) -> Scaled:
    """Returns zeros of the given shape; their mantissas have the given dtype."""
    return Scaled(jnp.ones(shape, dtype), jnp.full(shape, NOTHING, jnp.int32))


def two_to(power: jax.Array, dtype: np.dtype) -> jax.Array:
    """Returns 2^power for powers <= 0; 0 if 2^power is below the smallest normal number."""
    integer, bits, bias = _LAYOUT[dtype.itemsize]
    return jax.lax.bitcast_convert_type((jnp.maximum(power, -bias) + bias).astype(integer) << bits, dtype)


def normalise(mantissa: jax.Array, power: jax.Array) -> Scaled:
    """Returns mantissa * 2^power, for positive, normal floats as mantissas; numbers below 2^(NOTHING + 1) become 0."""
    integer, bits, bias = _LAYOUT[mantissa.dtype.itemsize]
    word = jax.lax.bitcast_convert_type(mantissa, integer)
    exponent = (word >> bits).astype(jnp.int32) - bias
    significand = (word & integer((1 << bits) - 1)) | integer(bias << bits)
    return Scaled(
        jax.lax.bitcast_convert_type(significand, mantissa.dtype),
        jnp.maximum(power + exponent, NOTHING).astype(jnp.int32),
    )


def exp_minus(values: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns (change, power) with exp(-values) = (1 + change) * 2^power, change in [-0.31, 0.43], and power int32.

    In float32, the result is exp(-v) for a number v that is about as close to a value beyond 10^5 as the next float.
    Values are limited to 2^27 in magnitude. If |values| < 0.34, the power is 0. The function returns the change instead
    of 1 + change, because 1 + change would have the same rounding error in all rounds if losses are the same in all
    rounds.
    """
    values = jnp.clip(values, -LARGEST, LARGEST)
    high, low = (values.dtype.type(part) for part in _LN2[values.dtype.itemsize])
    power = -jnp.round(values * values.dtype.type(1 / np.log(2)))
    exponent = jnp.clip(-((values + power * high) + power * low), -0.36, 0.36)  # rounding of large values exceeds it
    return expm1_near_0(exponent), power.astype(jnp.int32)


def expm1_near_0(values: jax.Array, terms: int = TERMS) -> jax.Array:
    """Returns exp(values) - 1; in float32, the truncation error of the series is below half a unit in the last place.

    |values| must be <= 0.36, or <= 1/8 with `GENTLE_TERMS` terms. `jnp.expm1` is accurate for all values, but several
    times slower.
    """
    if values.dtype != jnp.float32:
        return jnp.expm1(values)
    series = jnp.full_like(values, 1 / math.factorial(terms))
    for term in range(terms - 1, 0, -1):  # Horner's scheme
        series = values * series + values.dtype.type(1 / math.factorial(term))
    return values * series


def times(left: Scaled, right: Scaled) -> Scaled:
    """Multiplies the numbers, left * right."""
    return normalise(left.mantissa * right.mantissa, left.power + right.power)


def plus(left: Scaled, right: Scaled) -> Scaled:
    """Adds the numbers, left + right; here mantissas may be any positive, normal floats."""
    dtype, power = left.mantissa.dtype, jnp.maximum(left.power, right.power)
    parts = [number.mantissa * two_to(number.power - power, dtype) for number in (left, right)]
    return normalise(parts[0] + parts[1], power)


def shares(values: Scaled) -> jax.Array:
    """Returns the numbers divided by 2^(largest power), [...] float in [0, 2)."""
    return values.mantissa * two_to(values.power - jnp.max(values.power), values.mantissa.dtype)

"""Noise on exact sums, which are rounded to floats only once the noise is in them.

A float32 holds integers up to 2^24 alone: a count of 2^29 that is cast moves by 64 or not at all when one user changes,
while the noise was made for 1. Here the integer part of the noise is added in integers, so that what is released is
a function of count + noise, as the mechanisms' proofs take it to be.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.core import default_float
from jaxdp.mechanisms import tape
from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum, rounded

Exact = jax.Array | Sum


def exact_sums(name: str, values: ArrayLike | Sum) -> Exact:
    """Returns values as what noise can be added to: floats, integers of the default type, or a compensated sum.

    Args:
        name: of the argument, for the error.
        values: [...] float or integer array, or a `compensated.Sum`.

    Returns:
        Floats and sums as they are, shorter integers as the default ones.

    Raises:
        ValueError: if values are something else, or of a type of integers that the default one may not hold, as
            NumPy's int64 without 64-bit mode.
    """
    if isinstance(values, Sum):
        return values
    integer = jnp.result_type(int)
    given = getattr(values, "dtype", None)
    if given is not None and jnp.issubdtype(given, jnp.integer) and jnp.iinfo(given).max > jnp.iinfo(integer).max:
        # Of NumPy's integers JAX would drop the upper bits.
        raise ValueError(f"{name} must have a dtype that {integer} holds, got {given}")
    try:
        array = jnp.asarray(values)
    except OverflowError as error:
        raise ValueError(f"{name} must be within the range of {integer}, got larger integers") from error
    if jnp.issubdtype(array.dtype, jnp.floating):
        return array
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(f"{name} must be floats or integers, got dtype {array.dtype}")
    return array.astype(integer)


def float_type(values: Exact) -> jnp.dtype:
    """The dtype of values with noise: their own, of integers the default float."""
    if isinstance(values, Sum):
        return values.total.dtype
    return values.dtype if jnp.issubdtype(values.dtype, jnp.floating) else default_float()


def tape_value(values: Exact) -> jax.Array:
    """Returns the values that a tape records: the float of a compensated sum, others as they are."""
    return values.total if isinstance(values, Sum) else values


def record_exact(values: Exact, entry: tape.Entry) -> Exact:
    """Writes the entry of a release, and returns what to noise: the values, unless a tape puts in others."""
    used = tape.record(entry)
    return values._replace(total=used) if isinstance(values, Sum) else used


def add_noise(values: Exact, noise: jax.Array) -> jax.Array:
    """Values + noise, rounded to floats after the addition.

    Args:
        values: [...] floats, integers of the default type, or a compensated sum.
        noise: [...] float, of a shape that broadcasts with values.

    Returns:
        [...] float. Floats are added as they are. For integers the result is a function of the real number
        values + noise alone, and its nearest float as long as it is below 2^24 (2^53 in 64 bits); it does not wrap,
        however large the noise. For a compensated sum it is within one unit in the last place of
        total - excess + noise. Noise beyond 2^30 is coarser than a unit itself, as float32 numbers of that size are.
    """
    if isinstance(values, Sum):
        noisy = compensated.plus(values, Sum(rounded(noise), jnp.zeros_like(noise)))
        return noisy.total - noisy.excess
    if jnp.issubdtype(values.dtype, jnp.floating):
        return values + noise
    whole, part = _split(noise, _limit(values))
    half = (values & whole) + ((values ^ whole) >> 1)  # of their sum, rounded down; it does not wrap
    fits = jnp.abs(half) < _limit(values)
    exact = jnp.where(fits, (values + whole).astype(noise.dtype), 2 * half.astype(noise.dtype))
    return exact + part


def leads(values: Exact, noise: jax.Array, among: jax.Array | None = None) -> jax.Array:
    """By how much each noisy value leads the largest noisy one: at most 0, but for rounding.

    Leads are differences of noisy values, and are made of these alone: they are small where it matters, however large
    the values are, and no exact value has a part in them by itself.

    Args:
        values: [..., num_values] integers of the default type, or a compensated sum.
        noise: [..., num_values] float.
        among: [..., num_values] bool, which values count; None for all. Leads of others mean nothing.

    Returns:
        [..., num_values] float.
    """
    dtype, last = noise.dtype, noise.ndim - 1
    among = jnp.ones(noise.shape, bool) if among is None else among
    # Of each noisy value digits, with their weights, of which differences are exact as floats.
    if isinstance(values, Sum):
        noisy = compensated.plus(values, Sum(rounded(noise), jnp.zeros_like(noise)))
        digits = [(noisy.total, 1), (-noisy.excess, 1)]
    else:
        whole, part = _split(noise, _limit(values))
        places = jnp.iinfo(values.dtype).bits // 2
        low = (values & (2**places - 1)) + (whole & (2**places - 1))
        high = (values >> places) + (whole >> places) + (low >> places)
        digits = [(high, 2**places), (low & (2**places - 1), 1), (part, 1)]

    def behind(first: jax.Array) -> jax.Array:
        is_first = jax.lax.broadcasted_iota(jnp.int32, noise.shape, last) == first
        total = jnp.zeros_like(noise)
        for digit, weight in digits:
            its = jnp.sum(jnp.where(is_first, digit, 0), axis=-1, keepdims=True, dtype=digit.dtype)
            total = total + (digit - its).astype(dtype) * weight
        return total

    def largest(numbers: jax.Array) -> jax.Array:
        return jax.lax.argmax(jnp.where(among, numbers, -jnp.inf), last, jnp.int32)[..., None]

    near = sum((digit.astype(dtype) * weight for digit, weight in digits), start=jnp.zeros_like(noise))
    return behind(largest(behind(largest(near))))  # large numbers are near the largest first, then one is the largest


class _Split(NamedTuple):
    whole: jax.Array
    part: jax.Array


def _split(noise: jax.Array, limit: int) -> _Split:
    """Noise as an integer within +-limit and the rest, which is in (-1/2, 1/2] for noise within the limit."""
    noise = rounded(noise)
    whole = jnp.round(jnp.clip(noise, -limit, limit))
    down = noise - whole == -0.5  # halves were rounded to even: whether x.5 goes up must not depend on x
    whole = whole - down.astype(noise.dtype)
    return _Split(whole.astype(jnp.result_type(int)), noise - whole)


def _limit(values: jax.Array) -> int:
    """2^30 for 32-bit integers."""
    return 2 ** (jnp.iinfo(values.dtype).bits - 2)

"""Noise on exact sums, which are rounded to floats only once the noise is in them.

A float32 holds integers up to 2^24 alone: a count of 2^29 that is cast moves by 64 or not at all when one user changes,
while the noise was made for 1. Here the integer part of the noise is added in integers, so that what is released is
a function of count + noise, as the mechanisms' proofs take it to be.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp import compensated
from jaxdp.compensated import Sum, rounded
from jaxdp.mechanisms import tape

Exact = jax.Array | Sum


def exact_sums(name: str, values: ArrayLike | Sum) -> Exact:
    """Returns values as what noise can be added to: floats, integers of the default type, or a compensated sum.

    Args:
        name: of the argument, for the error.
        values: [...] float or integer array, or a `compensated.Sum`.

    Returns:
        Floats and sums as they are, shorter integers as the default ones.

    Raises:
        ValueError: if values are something else, or unsigned integers that the default type may not hold.
    """
    if isinstance(values, Sum):
        return values
    array, integer = jnp.asarray(values), jnp.result_type(int)
    if jnp.issubdtype(array.dtype, jnp.floating):
        return array
    if not jnp.issubdtype(array.dtype, jnp.integer):
        raise ValueError(f"{name} must be floats or integers, got dtype {array.dtype}")
    if jnp.iinfo(array.dtype).max > jnp.iinfo(integer).max:
        raise ValueError(f"{name} must have a dtype that {integer} holds, got {array.dtype}")
    return array.astype(integer)


def float_type(values: Exact) -> jnp.dtype:
    """The dtype of values with noise: their own, of integers the default float."""
    if isinstance(values, Sum):
        return values.total.dtype
    return values.dtype if jnp.issubdtype(values.dtype, jnp.floating) else jnp.result_type(float)


def recorded(values: Exact) -> jax.Array:
    """What a tape has of values: of a compensated sum its float."""
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

    Leads are differences of noisy values: they are small where it matters, however large the values are, and depend on
    the values through the noisy ones alone.

    Args:
        values: [..., num_values] integers of the default type, or a compensated sum.
        noise: [..., num_values] float.
        among: [..., num_values] bool, which values count; None for all. Leads of others mean nothing.

    Returns:
        [..., num_values] float. An integer more than a quarter of the integers' range behind the largest counts as a
        quarter behind.
    """
    among = jnp.ones(noise.shape, bool) if among is None else among

    def largest(numbers: jax.Array, lowest: float | int) -> jax.Array:
        return jnp.max(jnp.where(among, numbers, lowest), axis=-1, keepdims=True)

    if isinstance(values, Sum):
        noisy = add_noise(Sum(values.total - largest(values.total, -jnp.inf), values.excess), noise)
        return noisy - largest(noisy, -jnp.inf)
    limit = _limit(values)
    top = largest(values, jnp.iinfo(values.dtype).min)
    behind = jnp.minimum(values, top) - top
    behind = jnp.where(behind > 0, -limit, jnp.maximum(behind, -limit))  # positive where the difference wraps
    whole, part = _split(noise, limit // 2)
    whole = behind + whole
    near = whole.astype(noise.dtype) + part
    first = jax.lax.argmax(jnp.where(among, near, -jnp.inf), near.ndim - 1, jnp.int32)[..., None]
    is_first = jax.lax.broadcasted_iota(jnp.int32, near.shape, near.ndim - 1) == first

    def its(numbers: jax.Array) -> jax.Array:
        return jnp.sum(jnp.where(is_first, numbers, 0), axis=-1, keepdims=True, dtype=numbers.dtype)

    return (whole - its(whole)).astype(noise.dtype) + (part - its(part))


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

"""Noise on exact sums, which are rounded to floats only once the noise is in them.

A float32 holds integers up to 2^24 alone: a count of 2^29 that is cast moves by 64 or not at all when one user changes,
while the noise was made for 1. Here the integer part of the noise is added in integers, so that what is released is
a function of count + noise, as the mechanisms' proofs take it to be.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.mechanisms._grid import Exact, wide
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.numerics.rounding import rounded


def add_noise(values: Exact, noise: jax.Array) -> jax.Array:
    """Returns values + noise, rounded to floats after the addition.

    Args:
        values: [...] integers of the default type, floats, or a sum in fixed point.
        noise: [...] float, of a shape that broadcasts with values.

    Returns:
        [...] float. Floats are added as they are. For integers and sums the result is a function of the real number
        values + noise alone; for integers its nearest float as long as it is below 2^24 (2^53 in 64 bits); it does not
        wrap, however large the noise. Sums are added in 64 bits. Noise beyond 2^30 is coarser than a unit itself, as
        float32 numbers of that size are.
    """
    if isinstance(values, tuple):
        return _add_to_sum(values, noise)
    if jnp.issubdtype(values.dtype, jnp.floating):
        return values + noise
    whole, part = _split(noise, _limit(values))
    half = (values & whole) + ((values ^ whole) >> 1)  # of their sum, rounded down; it does not wrap
    fits = jnp.abs(half) < _limit(values)
    exact = jnp.where(fits, (values + whole).astype(noise.dtype), 2 * half.astype(noise.dtype))
    return exact + part


@in_64_bits
def _add_to_sum(values: Exact, noise: jax.Array) -> jax.Array:
    return (wide(values) + noise.astype(jnp.float64)).astype(noise.dtype)


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

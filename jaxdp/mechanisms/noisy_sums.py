"""Adds noise to exact sums, which are rounded to floats only after the addition.

float32 represents all integers only up to 2^24. If one user changes, a count of 2^29 that is cast to float32 changes by
64 or not at all, but the noise is calibrated for a change by 1. This module adds the integer part of the noise as an
integer. So the release is a function of count + noise, as the mechanisms' proofs assume.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.mechanisms._grid import Exact, wide
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.numerics.rounding import round_product


def add_noise(values: Exact, noise: jax.Array) -> jax.Array:
    """Returns values + noise, rounded to floats after the addition.

    Args:
        values: [...] integers of the default dtype, floats, or a sum in fixed point.
        noise: [...] float, of a shape that broadcasts with values.

    Returns:
        [...] float. Floats are added directly. For integers with noise in [-2^30, 2^30] (2^62 in 64-bit mode), and for
        sums in fixed point up to 2^33, the result depends only on the real number values + noise, and is computed
        without overflow. For integers, the result is the float nearest to this number if its magnitude is below 2^24
        (2^53 in 64-bit mode). Float32 noise beyond 2^30 has no digits below 128.
    """
    if isinstance(values, tuple):
        return _add_to_sum(values, noise)
    if jnp.issubdtype(values.dtype, jnp.floating):
        return values + noise
    integer, fraction = _split(noise, _limit(values))
    half = (values & integer) + ((values ^ integer) >> 1)  # (values + integer) / 2, rounded down, without wrapping
    fits = jnp.abs(half) < _limit(values)
    exact = jnp.where(fits, (values + integer).astype(noise.dtype), 2 * half.astype(noise.dtype))
    return exact + fraction


@in_64_bits
def _add_to_sum(values: Exact, noise: jax.Array) -> jax.Array:
    return (wide(values) + noise.astype(jnp.float64)).astype(noise.dtype)


class _Split(NamedTuple):
    integer: jax.Array
    fraction: jax.Array


def _split(noise: jax.Array, limit: int) -> _Split:
    """Splits noise into an integer in [-limit, limit] and the rest, which is in (-1/2, 1/2] for noise in this range."""
    noise = round_product(noise)
    integer = jnp.round(jnp.clip(noise, -limit, limit))
    down = noise - integer == -0.5  # `round` takes halves to even, but the rounding of x.5 must not depend on x
    integer = integer - down.astype(noise.dtype)
    return _Split(integer.astype(jnp.result_type(int)), noise - integer)


def _limit(values: jax.Array) -> int:
    """Returns 2^30 for 32-bit integers, 2^62 for 64-bit integers."""
    return 2 ** (jnp.iinfo(values.dtype).bits - 2)

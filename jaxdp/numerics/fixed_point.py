"""Adds real data exactly, as integer multiples of a public unit. A sum is an integer in two words.

A float sum of private data is rounded, and the rounding depends on all data. After many additions the sums of two
neighbours can differ by more than the replaced datum, so noise that is scaled to one datum does not hide the
difference. In this module a datum is rounded once, before it enters the sum, to a multiple of a unit. The unit is range
/ 2^20, where the range is the length of the interval that contains the datum. If a rounded datum changes, the sum
changes by exactly the same amount, for any order of addition. This is true while sums are at most 2^31 - 1 ranges (2^63
- 1 in 64-bit mode).
"""

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike, DTypeLike

from jaxdp.numerics.kernels import separate_kernels

BITS = 20
UNITS = 2**BITS  # number of units in a range
MOST_TERMS = 2**10  # maximum number of data that may be added as ordinary integers before `add`

P = ParamSpec("P")
R = TypeVar("R")


class Sum(NamedTuple):
    """An exact sum of data, equal to (whole + part / 2^20) times the range.

    Attributes:
        whole: [...] integers of the default type, the quotient of the sum and the range, rounded down.
        part: [...] integers of the same type, the remaining units, in [0, 2^20).
    """

    whole: jax.Array
    part: jax.Array


def in_64_bits(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function so that it is traced in 64-bit mode, even in a 32-bit program.

    Results of the function should have types that exist in 32-bit mode.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return call


def zero(shape: int | tuple[int, ...] = ()) -> Sum:
    """Returns an empty sum with this shape."""
    empty = jnp.zeros(shape, jnp.result_type(int))
    return Sum(empty, empty)


def units(values: jax.Array, scale: ArrayLike = UNITS) -> jax.Array:
    """Rounds data to integer numbers of units (range / 2^20), and clips these numbers.

    Args:
        values: [...] float32 or float64, data minus the lower end of their interval; NaN counts as 0.
        scale: [] float, 2^20 / range; public. It is a factor because a division is slower.

    Returns:
        [...] integers of the default type in [0, 2^20]. Both ends of the interval are converted exactly.

    Examples:
        >>> print(units(jnp.array([0.0, 0.25, 1.0, 7.0, jnp.nan])))
        [      0  262144 1048576 1048576       0]
    """
    scaled = jnp.where(jnp.isnan(values), 0, values) * jnp.asarray(scale, values.dtype)
    whole = jnp.round(jnp.clip(scaled, 0, 2 * UNITS)).astype(jnp.result_type(int))
    return jnp.clip(whole, 0, UNITS)


def from_floats(values: jax.Array) -> Sum:
    """Converts data without a public range to sums with range 1.

    Args:
        values: [...] float32 or float64. Values are rounded to multiples of 2^-20, and clipped to values that fit into
            `Sum`; NaN counts as 0.

    Examples:
        >>> [leaf.tolist() for leaf in from_floats(jnp.array([-0.75, 3.0]))]
        [[-1, 3], [262144, 0]]
    """
    integer = jnp.result_type(int)
    largest = jnp.nextafter(jnp.asarray(2.0 ** (jnp.iinfo(integer).bits - 1), values.dtype), 0)
    clipped = jnp.clip(jnp.where(jnp.isnan(values), 0, values), -largest, largest)
    whole = jnp.trunc(clipped)  # the remainder is exact
    return _carry(whole.astype(integer), jnp.round((clipped - whole) * UNITS).astype(integer))


def add(running: Sum, more: jax.Array, *, restart: jax.Array | None = None) -> Sum:
    """Adds `more`, integer units of at most 2^10 data, to `running`, or to 0 if `restart` ([] bool) is true."""

    def add_part(running: Sum, more: jax.Array, restart: jax.Array | None = None) -> Sum:
        if restart is not None:
            running = Sum(*(jnp.where(restart, 0, word) for word in running))
        return _carry(running.whole, running.part + more.astype(running.part.dtype))

    inputs = (running, more) if restart is None else (running, more, restart)
    return separate_kernels(add_part, *inputs)  # `more` is computed only once for both words


def plus(left: Sum, right: Sum) -> Sum:
    """Adds two sums."""
    return _carry(left.whole + right.whole, left.part + right.part)


def minus(left: Sum, right: Sum) -> Sum:
    """Subtracts the right sum from the left sum."""
    return _carry(left.whole - right.whole, left.part - right.part)


def negative(values: Sum) -> Sum:
    """Returns the negatives of the sums."""
    return _carry(-values.whole, -values.part)


def excess_over_least(values: Sum) -> Sum:
    """Subtracts from the sums ([..., n]) their minimum along the last axis."""
    least = jnp.min(values.whole, -1, keepdims=True)
    part = jnp.where(values.whole == least, values.part, UNITS)
    return minus(values, Sum(least, jnp.min(part, -1, keepdims=True)))


def to_float(values: Sum, dtype: DTypeLike) -> jax.Array:
    """Converts sums to floats ([...]) in multiples of the range. Floats are rounded, so convert after all additions."""
    return values.whole.astype(dtype) + values.part.astype(dtype) * jnp.asarray(1 / UNITS, dtype)


def _carry(whole: jax.Array, part: jax.Array) -> Sum:
    """Moves whole ranges from `part` to `whole`, so that `part` is in [0, 2^20)."""
    return Sum(whole + (part >> BITS), part & (UNITS - 1))

"""Exact sums of real data: each datum is an integer number of public units, and a sum is an integer in two words.

A float sum of private data rounds, and the rounding depends on all data: after many additions a neighbour's sum differs
by more than the replaced datum, so that noise calibrated for one datum no longer hides it. Here a datum is rounded
once, before it enters the sum, to a multiple of its range / 2^20. A sum then changes by exactly the datum's change, in
any order of addition, up to 2^31 - 1 ranges (2^63 - 1 in 64 bits).
"""

from collections.abc import Callable
from functools import wraps
from typing import NamedTuple, ParamSpec, TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.numerics.kernels import separate_kernels

BITS = 20
UNITS = 2**BITS  # units in one range
MOST_TERMS = 2**10  # largest number of data whose units may be added up before they enter a sum

P = ParamSpec("P")
R = TypeVar("R")


class Sum(NamedTuple):
    """A sum of data, exactly: whole + part / 2^20 ranges.

    Attributes:
        whole: [...] integers of the default type, the number of whole ranges, rounded down.
        part: [...] integers of the same type, the units beyond the whole ranges, in [0, 2^20).
    """

    whole: jax.Array
    part: jax.Array


def in_64_bits(function: Callable[P, R]) -> Callable[P, R]:
    """Decorates a function so that it is traced with 64-bit types, also in a program that has none elsewhere.

    Its results should be of types that exist in 32-bit mode.
    """

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        with jax.enable_x64(True):
            return function(*args, **kwargs)

    return call


def zero(shape: int | tuple[int, ...] = ()) -> Sum:
    """Returns an empty sum of this shape."""
    empty = jnp.zeros(shape, jnp.result_type(int))
    return Sum(empty, empty)


def units(values: jax.Array, scale: ArrayLike = UNITS, *, lowest: int = 0) -> jax.Array:
    """Rounds data to integer numbers of units, and clips these.

    Args:
        values: [...] float, data minus the lower end of their range; NaN counts as 0.
        scale: [] float, number of units in 1: 2^20 / (upper end - lower end), public. It is a factor, as a division is
            slower.
        lowest: units of the lower end: 0, or -2^20 for data in [-1, 1], where the range is 1.

    Returns:
        [...] integers of the default type in [lowest, 2^20]. Both ends of the range are exact.

    Examples:
        >>> print(units(jnp.array([0.0, 0.25, 1.0, 7.0, jnp.nan])))
        [      0  262144 1048576 1048576       0]
    """
    scaled = jnp.where(jnp.isnan(values), 0, values) * jnp.asarray(scale, values.dtype)
    whole = jnp.round(jnp.clip(scaled, 2 * lowest, 2 * UNITS)).astype(jnp.result_type(int))
    return jnp.clip(whole, lowest, UNITS)


def from_floats(values: jax.Array) -> Sum:
    """Returns each datum as a separate sum, for data without a range.

    Args:
        values: [...] float, rounded to multiples of 2^-20; NaN counts as 0, and values beyond the range of `Sum` as the
            nearest end.

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
    """Adds the units of a datum, or their sum over up to 2^10 data, to `running`, or to 0 if `restart` ([] bool)."""

    def add_part(running: Sum, more: jax.Array, restart: jax.Array | None = None) -> Sum:
        if restart is not None:
            running = Sum(*(jnp.where(restart, 0, word) for word in running))
        return _carry(running.whole, running.part + more.astype(running.part.dtype))

    inputs = (running, more) if restart is None else (running, more, restart)
    return separate_kernels(add_part, *inputs)  # units are computed once for both words


def plus(left: Sum, right: Sum) -> Sum:
    """Adds two sums."""
    return _carry(left.whole + right.whole, left.part + right.part)


def minus(left: Sum, right: Sum) -> Sum:
    """Subtracts the right sum from the left one."""
    return _carry(left.whole - right.whole, left.part - right.part)


def negative(values: Sum) -> Sum:
    """Returns the sums of the data's negatives."""
    return _carry(-values.whole, -values.part)


def sum_along(values: Sum, axis: int = 0) -> Sum:
    """Returns the sum along an axis of at most 2^10 sums."""
    return _carry(
        jnp.sum(values.whole, axis, dtype=values.whole.dtype), jnp.sum(values.part, axis, dtype=values.part.dtype)
    )


def excess_over_least(values: Sum) -> Sum:
    """Returns how much each sum exceeds the smallest one of its row, [..., n]."""
    least = jnp.min(values.whole, -1, keepdims=True)
    part = jnp.where(values.whole == least, values.part, UNITS)
    return minus(values, Sum(least, jnp.min(part, -1, keepdims=True)))


def at_least(left: Sum, right: Sum) -> jax.Array:
    """Returns where left >= right, [...] bool."""
    return (left.whole > right.whole) | ((left.whole == right.whole) & (left.part >= right.part))


def to_float(values: Sum, dtype: jnp.dtype) -> jax.Array:
    """Returns the sums in ranges, [...] float, rounded to the dtype: for post-processing, once, at the end."""
    return values.whole.astype(dtype) + values.part.astype(dtype) * jnp.asarray(1 / UNITS, dtype)


def _carry(whole: jax.Array, part: jax.Array) -> Sum:
    """Normalizes a sum of ranges and of units, which may exceed a range or be negative."""
    return Sum(whole + (part >> BITS), part & (UNITS - 1))

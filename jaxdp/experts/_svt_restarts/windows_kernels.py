"""Some functions of `windows` in a layout for XLA on CPU; tests check that both give the same results, bit for bit.

For at most 16 experts and levels, the `jax.vmap` batch axis is contiguous in memory (the fast axis), and maxima over
the first axis are unrolled, because XLA on CPU reduces short rows slowly.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.numerics.fixed_point import BITS, UNITS, Sum
from jaxdp.numerics.kernels import MAX_UNROLLED, lanes_last, own_kernel, tree_reduce


def replace_columns(written: jax.Array, now: jax.Array, memory: jax.Array) -> jax.Array:
    """Replaces the columns of `memory` for which `written` is true by `now`, as `windows.replace_columns`."""
    return lanes_last(jnp.where(written[None], lanes_last(now)[:, None], lanes_last(memory)))


def largest_short(regrets: Sum, memory: jax.Array, short: int) -> jax.Array:
    """Returns, for each of the first `short` columns, the maximum regret over experts since its time, in units."""

    def since(regrets: Sum, memory: jax.Array) -> jax.Array:
        low = jnp.left_shift(lanes_last(regrets.whole), BITS) | lanes_last(regrets.part)
        return lanes_last(largest(low[:, None] - lanes_last(memory)[:, :short]).astype(jnp.float64))

    return lanes_last(own_kernel(since, *jax.tree.map(lanes_last, (regrets, memory))))


def largest_long(regrets: Sum, low: jax.Array, whole: jax.Array) -> jax.Array:
    """Returns, for each of the last columns, the maximum regret over experts since the column's time, in units.

    The length of the result is the length of the second axis of `whole`. Regrets may exceed the range of integers.
    """

    def since(regrets: Sum, low: jax.Array, whole: jax.Array) -> jax.Array:
        part = lanes_last(low)[:, -whole.shape[1] :] & (UNITS - 1)
        now, then = (
            lanes_last(words.whole).astype(jnp.float64) * UNITS + lanes_last(words.part).astype(jnp.float64)
            for words in (regrets, Sum(whole, part))
        )
        return lanes_last(largest(now[:, None] - then))

    return lanes_last(own_kernel(since, *jax.tree.map(lanes_last, (regrets, low, whole))))


def largest(values: jax.Array) -> jax.Array:
    """Returns the maximum of values along the first axis; values are [n, ...], the result is [...]."""
    return tree_reduce(jnp.maximum, values) if len(values) <= MAX_UNROLLED else values.max(axis=0)


def as_kernel(function: Callable[..., jax.Array], *inputs: Any) -> jax.Array:
    """Computes a scalar function of trees of arrays in a separate kernel, with the batch axis as the fast axis."""

    def inside(*inputs: Any) -> jax.Array:
        return function(*jax.tree.map(lanes_last, inputs))

    return own_kernel(inside, *jax.tree.map(lanes_last, inputs))

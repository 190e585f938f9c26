"""The steps of `windows`, laid out for XLA on CPU; they are tested to be equal to the plain ones bit for bit.

Up to 16 experts and levels, lanes are the fast axis, and maxima over the first axis are written out: XLA on CPU reduces
short rows slowly.
"""

import jax
import jax.numpy as jnp

from jaxdp.numerics.fixed_point import UNITS, Sum
from jaxdp.numerics.kernels import WRITTEN_OUT, folded, lanes_last, own_kernel


def replaced(written: jax.Array, now: jax.Array, memory: jax.Array) -> jax.Array:
    """`windows.replaced`."""
    return lanes_last(jnp.where(written[None], lanes_last(now)[:, None], lanes_last(memory)))


def largest_sums(regrets: Sum, memory: Sum) -> jax.Array:
    """`windows.largest_sums`."""

    def largest_since(regrets: Sum, memory: Sum) -> jax.Array:
        now, then = (
            whole.astype(jnp.int64) * UNITS + part.astype(jnp.int64) for whole, part in map(_placed, (regrets, memory))
        )
        return lanes_last(largest(now[:, None] - then))

    return lanes_last(own_kernel(largest_since, _placed(regrets), _placed(memory)))


def largest(values: jax.Array) -> jax.Array:
    """The largest of values [n, ...] along the first axis: [...]."""
    return folded(jnp.maximum, values) if len(values) <= WRITTEN_OUT else values.max(axis=0)


def _placed(sums: Sum) -> Sum:
    return Sum(*map(lanes_last, sums))

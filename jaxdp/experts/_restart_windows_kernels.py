"""The steps of `_restart_windows`, laid out for XLA on CPU; they are tested to be equal to the plain ones bit for bit.

Up to 16 experts and levels, lanes are the fast axis, and maxima over the first axis are written out: XLA on CPU reduces
short rows slowly.
"""

import jax
import jax.numpy as jnp

from jaxdp.numerics.kernels import WRITTEN_OUT, folded, lanes_last, own_kernel


def replaced(written: jax.Array, beyond: jax.Array, memory: jax.Array) -> jax.Array:
    """`_restart_windows.replaced`."""
    return lanes_last(jnp.where(written[None], lanes_last(beyond)[:, None], lanes_last(memory)))


def largest_sums(beyond: jax.Array, memory: jax.Array) -> jax.Array:
    """`_restart_windows.largest_sums`."""

    def found(beyond: jax.Array, memory: jax.Array) -> jax.Array:
        return lanes_last(largest(lanes_last(beyond)[:, None] - lanes_last(memory)))

    return lanes_last(own_kernel(found, lanes_last(beyond), lanes_last(memory)))


def largest(values: jax.Array) -> jax.Array:
    """The largest of values [n, ...] along the first axis: [...] float."""
    return folded(jnp.maximum, values) if len(values) <= WRITTEN_OUT else values.max(axis=0)

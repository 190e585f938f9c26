"""Losses of several rounds at once, added up in a kernel for XLA on CPU."""

import jax
import jax.numpy as jnp

from jaxdp.numerics.kernels import WRITTEN_OUT, folded, lanes_fast, own_kernel

MOST = 32  # rounds that are written out one after the other


def added_up(losses: jax.Array, planned: jax.Array) -> jax.Array:
    """The units of losses of the planned rounds, added up: [num_experts] integers.

    Args:
        losses: [rounds, num_experts] units of up to 2^10 rounds.
        planned: [rounds] bool, which rounds count.
    """
    is_short = losses.shape[1] <= WRITTEN_OUT and len(losses) <= MOST  # then lanes of `jax.vmap` are the fast axis

    def place(values: jax.Array) -> jax.Array:
        return lanes_fast(values) if is_short else values

    def added(losses: jax.Array, planned: jax.Array) -> jax.Array:
        counted = jnp.where(place(planned)[:, None], place(losses), 0)
        return place(folded(jnp.add, counted) if is_short else counted.sum(axis=0, dtype=losses.dtype))

    return place(own_kernel(added, place(losses), place(planned)))

"""Sums the losses of several rounds, in a kernel for XLA on CPU."""

import jax
import jax.numpy as jnp

from jaxdp.numerics.kernels import MAX_UNROLLED, lanes_fast, own_kernel, tree_reduce

MOST = 32  # largest number of rounds that is unrolled


def sum_rounds(losses: jax.Array, planned: jax.Array) -> jax.Array:
    """Returns the sum of integer losses over the planned rounds: [num_experts] integers.

    Args:
        losses: [rounds, num_experts] integers, the losses of up to 2^10 rounds as multiples of a unit such as 2^-20.
        planned: [rounds] bool, whether a round enters the sum.
    """
    is_short = losses.shape[1] <= MAX_UNROLLED and len(losses) <= MOST  # then lanes of `jax.vmap` are the fast axis

    def layout(values: jax.Array) -> jax.Array:
        return lanes_fast(values) if is_short else values

    def total(losses: jax.Array, planned: jax.Array) -> jax.Array:
        planned_losses = jnp.where(layout(planned)[:, None], layout(losses), 0)
        return layout(
            tree_reduce(jnp.add, planned_losses) if is_short else planned_losses.sum(axis=0, dtype=losses.dtype)
        )

    return layout(own_kernel(total, layout(losses), layout(planned)))

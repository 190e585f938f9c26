"""What learners that keep losses in the clear share: the loss of an expert, and totals of which differences count."""

import jax
import jax.numpy as jnp

from jaxdp.core import Scalar
from jaxdp.numerics.compensated import Sum


def of_expert(losses: jax.Array, expert: jax.Array) -> jax.Array:
    """The loss of one expert, []; 0 for an expert that there is not."""
    its = jnp.where(jnp.arange(losses.shape[-1], dtype=expert.dtype) == expert, losses, 0)
    return jnp.sum(its, dtype=losses.dtype)


def behind(totals: Sum) -> jax.Array:
    """By how much each total exceeds the smallest one of its row, [..., num_experts] float.

    Differences first: totals are large, and their excess matters for what is between them. Selection needs no more, as
    its law does not change if all scores move by the same amount.
    """
    return (totals.total - totals.total.min(-1, keepdims=True)) - totals.excess


def odds(totals: Sum, learning_rate: Scalar) -> jax.Array:
    """What experts are drawn in proportion to by exponential weights, [num_experts] float: exp(-learning_rate * total).

    Args:
        totals: [num_experts], of losses.
        learning_rate: [] float > 0.
    """
    return jnp.exp(-learning_rate * behind(totals))

"""What learners that keep losses in the clear share: the loss of an expert, and totals of which differences count."""

import jax
import jax.numpy as jnp

from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import Sum


def of_expert(losses: jax.Array, expert: jax.Array) -> jax.Array:
    """The loss of one expert, []; 0 for an expert that there is not."""
    its = jnp.where(jnp.arange(losses.shape[-1], dtype=expert.dtype) == expert, losses, 0)
    return jnp.sum(its, dtype=losses.dtype)


def behind(totals: Sum) -> jax.Array:
    """By how much each total exceeds the smallest one of its row, [..., num_experts] float64; traced in 64 bits."""
    return fixed_point.to_float(fixed_point.above_least(totals), jnp.float64)

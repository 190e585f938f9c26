"""Helpers of learners that keep exact losses: an expert's loss, and differences of totals."""

import jax
import jax.numpy as jnp

from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import Sum


def of_expert(losses: jax.Array, expert: jax.Array) -> jax.Array:
    """Returns the loss of one expert, []; 0 if no such expert exists."""
    its = jnp.where(jnp.arange(losses.shape[-1], dtype=expert.dtype) == expert, losses, 0)
    return jnp.sum(its, dtype=losses.dtype)


def behind(totals: Sum) -> jax.Array:
    """Returns each total's excess over the smallest of its row, [..., num_experts] float64; traced in 64 bits."""
    return fixed_point.to_float(fixed_point.above_least(totals), jnp.float64)

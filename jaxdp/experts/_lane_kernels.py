"""Sets memory layouts in loops of XLA on CPU: the `jax.vmap` batch axis is the fast (last) axis of short arrays.

Values do not change. The carry of a loop keeps the layout that the loop's body sets.
"""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.kernels import MAX_UNROLLED, lanes_last_if_many, lanes_last_if_small, separate_kernels
from jaxdp.numerics.lookup import nearest_entry

MOST = MAX_UNROLLED  # the batch axis is the fast axis of arrays with a first axis of at most this length


def keep_lane_layout(state: Any, layout: Callable[[jax.Array], jax.Array] = lanes_last_if_small) -> Any:
    """Returns the state unchanged, after setting the memory layout of each array by the function `layout`."""
    return jax.tree.map(layout, state)


def select(condition: jax.Array, one: Any, other: Any) -> Any:
    """Returns the tree `one` if the condition ([] bool) is true, else `other`; `lanes_last_if_many` sets the layout."""
    return jax.tree.map(lambda left, right: lanes_last_if_many(jnp.where(condition, left, right)), one, other)


def add_losses(totals: Sum, losses: jax.Array) -> Sum:
    """Computes `compensated.add` with the batch axis as the fast axis of short arrays."""
    if len(losses) <= MOST:
        return separate_kernels(compensated.add, totals, losses)
    # XLA fuses the difference into the loop that computes the losses. The result is the same, bit for bit.
    corrected = losses - totals.excess
    zero = jnp.zeros((), losses.dtype)
    return separate_kernels(lambda total, value: compensated.add(Sum(total, zero), value), totals.total, corrected)


def entry_at(values: jax.Array, index: jax.Array) -> jax.Array:
    """Returns values[clip(index)]; short arrays use selects, because XLA's gather on CPU processes lanes one by one."""
    if len(values) > MAX_UNROLLED:
        return nearest_entry(values, index)
    value = values[0]
    for position in range(1, len(values)):
        value = jnp.where(index >= position, values[position], value)
    return value

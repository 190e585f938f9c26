"""What a loop of simulation carries, laid out for XLA on CPU: lanes of `jax.vmap` are the fast axis of short arrays.

A loop keeps the layout that its body gives to what it carries. Values are as they were.
"""

from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.kernels import WRITTEN_OUT, apart, lanes_last, lanes_last_if_small
from jaxdp.numerics.lookup import nearest

MOST = WRITTEN_OUT  # lanes are the fast axis of arrays whose first axis has at most this length


def carried(state: Any) -> Any:
    """The state; lanes are the fast axis of each of its arrays that is small and whose first axis is short."""
    return jax.tree.map(lanes_last_if_small, state)


def chosen(condition: jax.Array, one: Any, other: Any) -> Any:
    """One where the condition, [] bool, holds, and else the other: trees of arrays, carried."""
    return jax.tree.map(lambda left, right: lanes_last(jnp.where(condition, left, right)), one, other)


def added(totals: Sum, losses: jax.Array) -> Sum:
    """`compensated.add`, carried."""
    if len(losses) <= MOST:
        return apart(compensated.add, totals, losses)
    # The difference is in one loop with what made the losses; with an excess of 0 the same formula has the same bits.
    corrected = losses - totals.excess
    none = jnp.zeros((), losses.dtype)
    return apart(lambda total, value: compensated.add(Sum(total, none), value), totals.total, corrected)


def at(values: jax.Array, index: jax.Array) -> jax.Array:
    """The entry of the nearest valid index. Of few it is selected: a gather goes through lanes one by one."""
    if len(values) > WRITTEN_OUT:
        return nearest(values, index)
    found = values[0]
    for place in range(1, len(values)):
        found = jnp.where(index >= place, values[place], found)
    return found

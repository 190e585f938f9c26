"""Sums outcomes over rounds, with compensation for floats and saturation (no wrap-around) for integers."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import across_lanes, own_kernel

UNROLLED = 8  # rounds in one kernel; with more, compilation takes longer and the program is no faster
Running = dict[str, compensated.Sum | jax.Array]


def empty(outcomes: Mapping[str, jax.ShapeDtypeStruct]) -> Running:
    """Returns empty sums of outcomes.

    Floats have compensated sums, in float32 or in a wider dtype that they have. Sums of integers and booleans are
    int32, or int64 in 64-bit mode.
    """
    return {
        name: compensated.zero(jnp.zeros((), leaf.dtype if jnp.finfo(leaf.dtype).bits >= 32 else jnp.float32))
        if jnp.issubdtype(leaf.dtype, jnp.floating)
        else jnp.zeros((), jnp.result_type(int))
        for name, leaf in outcomes.items()
    }


def add(running: Running, outcomes: Mapping[str, jax.Array]) -> Running:
    """Returns the running sums plus the outcomes of one round, or plus totals of several rounds."""
    return {name: _add(total, outcomes[name]) for name, total in running.items()}


def add_block(running: Running, outcomes: Mapping[str, jax.Array], order: jax.Array | None, used: jax.Array) -> Running:
    """Adds the outcomes of a block's first `used` rounds. The result equals `add` round by round, bit for bit.

    `order` has the round of each slot of the block; it increases over the slots of used rounds. None means 0, 1, 2, ...
    """
    return _add_rounds((running, {name: outcomes[name] for name in running}, order, used)) if running else running


def totals(running: Running) -> dict[str, jax.Array]:
    """Returns the sums so far keyed by name, as arrays."""
    return {name: s.total if isinstance(s, compensated.Sum) else s for name, s in running.items()}


@across_lanes
def _add_rounds(block: tuple[Running, dict[str, jax.Array], jax.Array | None, jax.Array]) -> Running:
    running, outcomes, order, used = block
    length = len(next(iter(outcomes.values())))

    def pad(values: jax.Array, fill: jax.Array | int) -> jax.Array:
        padding = jnp.full((-length % UNROLLED, *values.shape[1:]), fill, values.dtype)  # unused rounds
        return jnp.concatenate([values, padding]) if len(padding) else values

    def add_chunk(running: Running, values: dict[str, jax.Array], order: Any, start: jax.Array, used) -> Running:
        # Rows are read inside the kernel. As slices outside of it they would be copied.
        def row(values: jax.Array, index: int) -> jax.Array:
            return jax.lax.dynamic_index_in_dim(values, start + index, keepdims=False)

        for index in range(UNROLLED):
            round_ = start + index if order is None else row(order, index)
            running = _add_used(running, {name: row(values[name], index) for name in values}, round_, used)
        return running

    values = {name: pad(outcome, 0) for name, outcome in outcomes.items()}
    rounds = None if order is None else pad(order, used)

    def body(chunk: jax.Array, running: Running) -> Running:
        return own_kernel(add_chunk, running, values, rounds, chunk * UNROLLED, used)

    return jax.lax.fori_loop(0, -(-length // UNROLLED), body, running)


@partial(jax.jit, inline=True)  # traced once for all rounds of a block
def _add_used(running: Running, outcomes: dict[str, jax.Array], round_: jax.Array, used: jax.Array) -> Running:
    """Adds the outcomes of round `round_` of a block to the sums if the block used this round (`round_` < `used`)."""
    return jax.tree.map(lambda after, before: jnp.where(round_ < used, after, before), add(running, outcomes), running)


def _add(running: compensated.Sum | jax.Array, value: jax.Array) -> compensated.Sum | jax.Array:
    value = jnp.asarray(value)  # an outcome may be a Python number
    if isinstance(running, compensated.Sum):
        return compensated.add(running, value.astype(running.total.dtype))
    info = jnp.iinfo(running.dtype)
    if jnp.issubdtype(value.dtype, jnp.unsignedinteger) and jnp.iinfo(value.dtype).max > info.max:
        value = jnp.minimum(value, jnp.asarray(info.max, value.dtype))
    is_count = value.dtype == bool  # adds at most 1 in each round, and the number of rounds fits
    value = value.astype(running.dtype)
    total = running + value
    if is_count:
        return total
    wrapped = (value >= 0) == (total < running)  # the sum moved in the wrong direction
    return jnp.where(wrapped, jnp.where(value > 0, info.max, info.min).astype(running.dtype), total)

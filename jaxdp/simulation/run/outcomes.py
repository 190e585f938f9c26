"""Sums of outcomes over rounds, which neither stall nor wrap."""

from collections.abc import Mapping
from functools import partial

import jax
import jax.numpy as jnp

from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import across_lanes, own_kernel

UNROLLED = 32  # rounds in a kernel
Running = dict[str, compensated.Sum | jax.Array]


def empty(outcomes: Mapping[str, jax.ShapeDtypeStruct]) -> Running:
    """Sums of nothing: compensated for floats; int32, or int64 under x64, for integers and truth values."""
    return {
        name: compensated.zero(jnp.zeros((), leaf.dtype))
        if jnp.issubdtype(leaf.dtype, jnp.floating)
        else jnp.zeros((), jnp.result_type(int))
        for name, leaf in outcomes.items()
    }


def add(running: Running, outcomes: Mapping[str, jax.Array]) -> Running:
    """Adds one round's outcomes, or totals of several rounds."""
    return {name: _add(total, outcomes[name]) for name, total in running.items()}


def add_block(running: Running, outcomes: Mapping[str, jax.Array], order: jax.Array, used: jax.Array) -> Running:
    """Adds a block's outcomes of the first `used` rounds, one after the other: as `add` round by round, bit for bit.

    Args:
        running: the sums so far.
        outcomes: by name, [block length].
        order: [block length] integers, which round each is of, increasing among those used.
        used: [] integer, how many rounds to add.
    """
    return _add_rounds((running, {name: outcomes[name] for name in running}, order, used))


def totals(running: Running) -> dict[str, jax.Array]:
    """The sums so far."""
    return {name: s.total if isinstance(s, compensated.Sum) else s for name, s in running.items()}


@across_lanes
def _add_rounds(block: tuple[Running, dict[str, jax.Array], jax.Array, jax.Array]) -> Running:
    running, outcomes, order, used = block

    def some(running: Running, outcomes: dict[str, jax.Array], order: jax.Array, used: jax.Array) -> Running:
        for index in range(len(order)):
            running = _add_used(running, {name: values[index] for name, values in outcomes.items()}, order[index], used)
        return running

    def part(rounds: slice, shape: tuple[int, ...]) -> tuple[dict[str, jax.Array], jax.Array]:
        return jax.tree.map(lambda leaf: leaf[rounds].reshape(*shape, *leaf.shape[1:]), (outcomes, order))

    whole = len(order) // UNROLLED
    if whole:  # a loop that is never entered would be traced all the same
        running, _ = jax.lax.scan(
            lambda running, chunk: (own_kernel(some, running, *chunk, used), None),
            running,
            part(slice(0, whole * UNROLLED), (whole, UNROLLED)),
        )
    rest = len(order) - whole * UNROLLED
    return own_kernel(some, running, *part(slice(whole * UNROLLED, None), (rest,)), used) if rest else running


@partial(jax.jit, inline=True)  # traced once for all rounds of a block
def _add_used(running: Running, outcomes: dict[str, jax.Array], round_: jax.Array, used: jax.Array) -> Running:
    """Adds one round's outcomes, if it is among the first `used`."""
    return jax.tree.map(lambda new, old: jnp.where(round_ < used, new, old), add(running, outcomes), running)


def _add(running: compensated.Sum | jax.Array, value: jax.Array) -> compensated.Sum | jax.Array:
    value = jnp.asarray(value)  # an outcome may be a Python number
    if isinstance(running, compensated.Sum):
        return compensated.add(running, value)
    info = jnp.iinfo(running.dtype)
    if jnp.issubdtype(value.dtype, jnp.unsignedinteger) and jnp.iinfo(value.dtype).max > info.max:
        value = jnp.minimum(value, jnp.asarray(info.max, value.dtype))
    is_count = value.dtype == bool  # at most one a round, and rounds fit
    value = value.astype(running.dtype)
    total = running + value
    if is_count:
        return total
    wrapped = (value >= 0) == (total < running)  # more became less, or less more
    return jnp.where(wrapped, jnp.where(value > 0, info.max, info.min).astype(running.dtype), total)

"""Sums of outcomes over rounds, which neither stall nor wrap."""

from collections.abc import Mapping

import jax
import jax.numpy as jnp

from jaxdp import compensated

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
    length = len(order)

    def step(running: Running, round_: tuple[jax.Array, Mapping[str, jax.Array]]) -> tuple[Running, None]:
        index, outcome = round_
        added = add(running, outcome)
        return jax.tree.map(lambda new, old: jnp.where(index < used, new, old), added, running), None

    # Unrolled: a step of a scan costs far more than an addition.
    return jax.lax.scan(step, running, (order, {name: outcomes[name] for name in running}), unroll=min(length, 32))[0]


def totals(running: Running) -> dict[str, jax.Array]:
    """The sums so far."""
    return {name: s.total if isinstance(s, compensated.Sum) else s for name, s in running.items()}


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

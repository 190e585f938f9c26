"""Common parts of the entries of counters."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Domain, replace_one_row
from jaxdp.core import default_float
from jaxdp.mechanisms import Counter
from jaxdp.mechanisms.numerical import nodes_delta
from jaxdp.registry.entries import MechanismEntry
from jaxdp.registry.mechanisms._releases import Pair
from jaxdp.registry.second import Second

UNIT = "one entry of a stream"
LONGEST = 16  # of the horizons here
LEVELS = LONGEST.bit_length()


# Counters are made when they are used: they take the float type in force at that time.
def in_nodes(epsilon: float, delta: float) -> float | None:
    return nodes_delta(epsilon, LEVELS)


def prefixes(counter: Counter, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    return counter.prefixes(jax.random.split(key, len(data)), params, data)


def fed(counter: Counter, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    """Returns the prefix sums, fed entry by entry."""
    key_init, key_feed = jax.random.split(key)

    def feed(state: Any, entry: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
        state = counter.feed(entry[0], params, state, entry[1])
        return state, counter.read(params, state)

    state = counter.init(key_init, params, dtype=data.dtype)
    return jax.lax.scan(feed, state, (jax.random.split(key_feed, len(data)), data))[1]


def total(data):
    return jnp.cumsum(data).astype(default_float())


def the_first_entry_moves(horizon: int) -> Pair:
    """Returns streams that differ in the first entry, which ends no block and is in one of each level.

    The second entry is 1.
    """
    second = np.zeros(horizon, np.int32)
    second[1] = 1
    both = second.copy()
    both[0] = 1
    return second, both


def bits(horizon: int) -> Domain:
    return replace_one_row(lambda key: jax.random.bernoulli(key).astype(jnp.int32), count=horizon)


counter_entry = partial(
    MechanismEntry,
    family="mechanisms",
    sizes={"horizon": 3},
    grid={"epsilon": (0.1, 4.0)},
    domain=bits,
    exact=total,
    second=Second({"horizon": 16}),
)

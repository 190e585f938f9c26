"""Continual counters, as one release of all prefix sums."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Domain, replaced_rows
from jaxdp.core import default_float
from jaxdp.mechanisms import Counter, doubling_counter, toeplitz_counter, tree_counter
from jaxdp.mechanisms.numerical import TOEPLITZ_STEPS, gaussian_rho, nodes_delta, normal_delta
from jaxdp.registry.entries import MechanismEntry
from jaxdp.registry.mechanisms import Pair, claim
from jaxdp.registry.second import Second

UNIT = "one entry of a stream"
LONGEST = 16  # of the horizons here
LEVELS = LONGEST.bit_length()
# Counters are made when they are used: they have the float type of that time.


def _in_nodes(epsilon: float, delta: float) -> float | None:
    return nodes_delta(epsilon, LEVELS)


def _in_entries(epsilon: float, delta: float) -> float | None:
    return normal_delta(LONGEST, rho=gaussian_rho(epsilon, delta), steps=TOEPLITZ_STEPS)


def _prefixes(counter: Counter, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    return counter.prefixes(jax.random.split(key, len(data)), params, data)


def _fed(counter: Counter, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    """The same, entry by entry."""
    key_init, key_feed = jax.random.split(key)

    def feed(state: Any, entry: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
        state = counter.feed(entry[0], params, state, entry[1])
        return state, counter.read(params, state)

    state = counter.init(key_init, params, dtype=data.dtype)
    return jax.lax.scan(feed, state, (jax.random.split(key_feed, len(data)), data))[1]


def _tree_params(*, epsilon: float, horizon: int, arity: int) -> Any:
    return tree_counter(horizon=horizon, arity=arity).params(epsilon=epsilon)


def _tree(key, params, data, *, horizon, arity):
    return _prefixes(tree_counter(horizon=horizon, arity=arity), key, params, data)


def _fed_tree(key, params, data, *, horizon, arity):
    return _fed(tree_counter(horizon=horizon, arity=arity), key, params, data)


def _toeplitz_params(*, epsilon: float, delta: float, horizon: int) -> Any:
    return toeplitz_counter(horizon=horizon).params(epsilon=epsilon, delta=delta)


def _toeplitz(key, params, data, *, horizon):
    return _prefixes(toeplitz_counter(horizon=horizon), key, params, data)


def _fed_toeplitz(key, params, data, *, horizon):
    return _fed(toeplitz_counter(horizon=horizon), key, params, data)


def _doubling_params(*, epsilon: float, horizon: int) -> Any:
    return doubling_counter(horizon=horizon).params(epsilon=epsilon)


def _doubling(key, params, data, *, horizon):
    return _prefixes(doubling_counter(horizon=horizon), key, params, data)


def _fed_doubling(key, params, data, *, horizon):
    return _fed(doubling_counter(horizon=horizon), key, params, data)


def _total(data):
    return jnp.cumsum(data).astype(default_float())


def _the_first_entry_moves(horizon: int) -> Pair:
    """It ends no block, and is in one of each level. The second is 1."""
    second = np.zeros(horizon, np.int32)
    second[1] = 1
    both = second.copy()
    both[0] = 1
    return second, both


def _the_second_entry_moves(horizon: int) -> Pair:
    """It is in the second epoch, which has two levels."""
    first = np.zeros(horizon, np.int32)
    first[0] = 1
    both = first.copy()
    both[1] = 1
    return first, both


def _bits(horizon: int) -> Domain:
    return replaced_rows(lambda key: jax.random.bernoulli(key).astype(jnp.int32), count=horizon)


COUNTERS = {
    "tree_counter": MechanismEntry(
        family="mechanisms",
        summary="estimates all prefix sums of a stream from a tree of noisy blocks",
        source="Dwork, Naor, Pitassi & Rothblum (2010); Chan, Shi & Song (2011); Honaker (2015), from the leaves up",
        proof="proved",
        factory=tree_counter,
        variant={"arity": 2},
        sizes={"horizon": 3},
        values={"epsilon": 1.0},
        params=_tree_params,
        guarantee=claim(
            "central", UNIT, "Laplace mechanism on blocks, of which an entry is in one of each level", _in_nodes
        ),
        release=_tree,
        others={"feed": _fed_tree},
        grid={"epsilon": (0.1, 4.0)},
        other_sizes=({"horizon": 4}, {"horizon": 8}),
        domain=_bits,
        neighbours=_the_first_entry_moves,
        exact=_total,
        second=Second({"horizon": 16}),
    ),
    "toeplitz_counter": MechanismEntry(
        family="mechanisms",
        summary="estimates all prefix sums of a stream with correlated Gaussian noise",
        source="Dvijotham, McMahan, Pillutla, Steinke & Thakurta (2024)",
        proof="proved",
        factory=toeplitz_counter,
        sizes={"horizon": 3},
        values={"epsilon": 1.0, "delta": 1e-3},
        params=_toeplitz_params,
        guarantee=claim(
            "central", UNIT, "analytic Gaussian mechanism on C x, of which estimates are a function", _in_entries
        ),
        release=_toeplitz,
        others={"feed": _fed_toeplitz},
        grid={"epsilon": (0.1, 4.0)},
        other_sizes=({"horizon": 4}, {"horizon": 8}),
        domain=_bits,
        neighbours=_the_first_entry_moves,
        exact=_total,
        second=Second({"horizon": 16}),
    ),
    "doubling_counter": MechanismEntry(
        family="mechanisms",
        summary="estimates all prefix sums of a stream of any length from ever larger trees of noisy blocks",
        source="Chan, Shi & Song (2011), the hybrid mechanism",
        proof="proved",
        factory=doubling_counter,
        sizes={"horizon": 3},
        values={"epsilon": 1.0},
        params=_doubling_params,
        guarantee=claim(
            "central", UNIT, "Laplace mechanism on blocks; an entry is in one tree, once in each level", _in_nodes
        ),
        release=_doubling,
        others={"feed": _fed_doubling},
        grid={"epsilon": (0.1, 4.0)},
        other_sizes=({"horizon": 7},),
        domain=_bits,
        neighbours=_the_second_entry_moves,
        exact=_total,
        second=Second({"horizon": 16}),
    ),
}

"""Common parts of the entries of counters."""

from collections.abc import Callable, Mapping
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
from jaxdp.registry.mechanisms._releases import RELEASED, Pair, at_sizes, claim, mechanism_entry
from jaxdp.registry.second import Second

LONGEST = 16  # the horizon for which a shorter stream is claimed


def tree_numerical_delta(epsilon: float, horizon: int) -> float | None:
    """Returns a bound on the delta that floating-point error adds to any binary Laplace tree up to the horizon.

    It is None if there is no bound. A tree with fewer levels can have the larger bound, if epsilon is large.
    """
    levels = range(1, max(horizon, LONGEST).bit_length() + 1)
    deltas = [nodes_delta(epsilon, number) for number in levels]
    return None if None in deltas else max(delta for delta in deltas if delta is not None)


def _in_one_entry(horizon: int, moved: int) -> Pair:
    """Returns two streams of `horizon` bits, which differ only in the entry with index `moved` (0 or 1).

    The entry with index 1 - `moved` is 1, and later entries are 0.
    """
    first = np.zeros(horizon, np.int32)
    first[1 - moved] = 1
    second = first.copy()
    second[moved] = 1
    return first, second


def counter_entry(
    summary: str,
    factory: Callable[..., Counter],
    source: str,
    argument: str,
    added: Callable[..., float | None] = tree_numerical_delta,
    *,
    variant: Mapping[str, Any] | None = None,
    values: Mapping[str, float] | None = None,
    other_sizes: tuple[Mapping[str, Any], ...] = ({"horizon": 4}, {"horizon": 8}),
    moved: int = 0,
) -> MechanismEntry:
    """Makes a counter's entry; `params` and all releases create the counter at each call, in JAX's current float dtype.

    `argument` is the reason why the claim holds, and `added` the bound on floating-point error as in `claim`.
    Neighbours are two streams that differ in the number with index `moved`.
    """
    names = ("horizon", *(variant or {}))
    return mechanism_entry(
        summary=summary,
        source=source,
        factory=factory,
        variant=variant or {},
        sizes={"horizon": 3},
        values={"epsilon": 1.0, **(values or {})},
        params=at_sizes(factory, names, lambda counter, **values: counter.params(**values)),
        guarantee=claim("central", "one entry of a stream", argument, added),
        release=at_sizes(factory, names, _prefixes, *RELEASED),
        others={"feed": at_sizes(factory, names, _prefix_sums, *RELEASED)},
        other_sizes=other_sizes,
        neighbours=partial(_in_one_entry, moved=moved),
        grid={"epsilon": (0.1, 4.0)},
        domain=_bits,
        exact=_exact_prefix_sums,
        second=Second({"horizon": 16}),
    )


def _prefixes(counter: Counter, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    return counter.prefixes(jax.random.split(key, len(data)), params, data)


def _prefix_sums(counter: Counter, key: jax.Array, params: Any, data: jax.Array) -> jax.Array:
    """Returns a counter's estimates of all prefix sums of the stream `data`, which it receives entry by entry."""
    key_init, key_feed = jax.random.split(key)

    def feed(state: Any, entry: tuple[jax.Array, jax.Array]) -> tuple[Any, jax.Array]:
        state = counter.feed(entry[0], params, state, entry[1])
        return state, counter.read(params, state)

    state = counter.init(key_init, params, dtype=data.dtype)
    return jax.lax.scan(feed, state, (jax.random.split(key_feed, len(data)), data))[1]


def _exact_prefix_sums(data):
    return jnp.cumsum(data).astype(default_float())


def _bits(horizon: int) -> Domain:
    return replace_one_row(lambda key: jax.random.bernoulli(key).astype(jnp.int32), count=horizon)

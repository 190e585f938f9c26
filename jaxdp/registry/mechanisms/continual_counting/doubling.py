"""The entry of `doubling_counter`."""

from typing import Any

import numpy as np

from jaxdp.mechanisms import doubling_counter
from jaxdp.registry.mechanisms._releases import Pair, claim
from jaxdp.registry.mechanisms.continual_counting._counters import UNIT, counter_entry, fed, in_nodes, prefixes

ORDER = 120  # in lists


def _doubling_params(*, epsilon: float, horizon: int) -> Any:
    return doubling_counter(horizon=horizon).params(epsilon=epsilon)


def _doubling(key, params, data, *, horizon):
    return prefixes(doubling_counter(horizon=horizon), key, params, data)


def _fed_doubling(key, params, data, *, horizon):
    return fed(doubling_counter(horizon=horizon), key, params, data)


def _the_second_entry_moves(horizon: int) -> Pair:
    """Returns streams that differ in the second entry, which is in the second epoch, of two levels."""
    first = np.zeros(horizon, np.int32)
    first[0] = 1
    both = first.copy()
    both[1] = 1
    return first, both


ENTRIES = {
    "doubling_counter": counter_entry(
        summary="estimates all prefix sums of a stream of any length from ever larger trees of noisy blocks",
        source="Chan, Shi & Song (2011), the hybrid mechanism",
        proof="proved",
        factory=doubling_counter,
        values={"epsilon": 1.0},
        params=_doubling_params,
        guarantee=claim(
            "central", UNIT, "Laplace mechanism on blocks; an entry is in one tree, once in each level", in_nodes
        ),
        release=_doubling,
        others={"feed": _fed_doubling},
        other_sizes=({"horizon": 7},),
        neighbours=_the_second_entry_moves,
    ),
}

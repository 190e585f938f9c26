"""The entry of `tree_counter`."""

from typing import Any

from jaxdp.mechanisms import tree_counter
from jaxdp.registry.mechanisms._releases import claim
from jaxdp.registry.mechanisms.continual_counting._counters import (
    UNIT,
    counter_entry,
    fed,
    in_nodes,
    prefixes,
    the_first_entry_moves,
)

ORDER = 100  # in lists


def _tree_params(*, epsilon: float, horizon: int, arity: int) -> Any:
    return tree_counter(horizon=horizon, arity=arity).params(epsilon=epsilon)


def _tree(key, params, data, *, horizon, arity):
    return prefixes(tree_counter(horizon=horizon, arity=arity), key, params, data)


def _fed_tree(key, params, data, *, horizon, arity):
    return fed(tree_counter(horizon=horizon, arity=arity), key, params, data)


ENTRIES = {
    "tree_counter": counter_entry(
        summary="estimates all prefix sums of a stream from a tree of noisy blocks",
        source="Dwork, Naor, Pitassi & Rothblum (2010); Chan, Shi & Song (2011); Honaker (2015), from the leaves up",
        proof="proved",
        factory=tree_counter,
        variant={"arity": 2},
        values={"epsilon": 1.0},
        params=_tree_params,
        guarantee=claim(
            "central", UNIT, "Laplace mechanism on blocks, of which an entry is in one of each level", in_nodes
        ),
        release=_tree,
        others={"feed": _fed_tree},
        other_sizes=({"horizon": 4}, {"horizon": 8}),
        neighbours=the_first_entry_moves,
    ),
}

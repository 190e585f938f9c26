"""Which of a user's data the privacy unit covers, by the names of their leaves."""

from collections.abc import Callable
from typing import Any

import jax

from jaxdp.core import Guarantee


def leaf_names(data: Any) -> list[str]:
    """The dotted path of each leaf, in order.

    >>> leaf_names({"answers": 0, "contexts": {"features": 1, "weights": (2, 3)}})
    ['answers', 'contexts.features', 'contexts.weights.0', 'contexts.weights.1']
    """
    return [_name(path) for path, _ in jax.tree_util.tree_leaves_with_path(data)]


def map_units(claim: Guarantee, change: Callable[[Any, Any], Any], base: Any, other: Any) -> Any:
    """What neighbours differ in: leaves of the privacy unit are changed, all others are the base's.

    Args:
        claim: whose `unit_leaves` name the leaves, or trees of leaves; None is all.
        change: (leaf of base, leaf of other) -> leaf.
        base: pytree of a user's data.
        other: pytree of the same structure.

    Returns:
        A pytree of the same structure.

    Raises:
        ValueError: if unit_leaves names what is no leaf, nor a tree of leaves.
    """
    check_units(claim, base)
    return jax.tree_util.tree_map_with_path(
        lambda path, mine, theirs: change(mine, theirs) if _is_unit(_name(path), claim) else mine, base, other
    )


def check_units(claim: Guarantee, data: Any) -> None:
    """Checks that every name of `unit_leaves` is one of the data's.

    Raises:
        ValueError: if not.
    """
    names = leaf_names(data)
    for unit in claim.unit_leaves or ():
        if not any(_covers(unit, name) for name in names):
            raise ValueError(f"unit_leaves must name leaves of a user's data, {', '.join(names)}, got {unit!r}")


def _name(path: Any) -> str:
    return jax.tree_util.keystr(path, simple=True, separator=".")


def _covers(unit: str, name: str) -> bool:
    return name == unit or name.startswith(f"{unit}.")


def _is_unit(name: str, claim: Guarantee) -> bool:
    return claim.unit_leaves is None or any(_covers(unit, name) for unit in claim.unit_leaves)

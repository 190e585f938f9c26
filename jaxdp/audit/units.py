"""Replaces the privacy unit in a user's data."""

from collections.abc import Callable
from typing import Any

import jax

from jaxdp.audit.transcripts import in_unit, leaf_name
from jaxdp.core import Guarantee


def map_units(claim: Guarantee, change: Callable[[Any, Any], Any], base: Any, other: Any) -> Any:
    """Changes the leaves of the privacy unit in a user's data; all other leaves are taken from `base`.

    Args:
        claim: a claim. Its `sensitive_fields` name the leaves of the unit, or subtrees of leaves; None means all
            leaves.
        change: (leaf of base, leaf of other) -> leaf.
        base: pytree of a user's data.
        other: pytree of the same structure.

    Raises:
        ValueError: if `sensitive_fields` names something that is neither a leaf nor a subtree.

    Examples:
        >>> claim = Guarantee.pure(1.0, trust_model="local", privacy_unit="a", argument="b", sensitive_fields=("x",))
        >>> map_units(claim, lambda old, new: new, {"x": (0, 1), "y": 2}, {"x": (3, 4), "y": 5})
        {'x': (3, 4), 'y': 2}
    """
    paths = [path for path, _ in jax.tree_util.tree_leaves_with_path(base)]
    for unit in claim.sensitive_fields or ():
        names = [leaf_name(path) for path in paths]
        if not any(name == unit or name.startswith(f"{unit}.") for name in names):
            raise ValueError(f"sensitive_fields must name leaves of a user's data, {', '.join(names)}, got {unit!r}")
    return jax.tree_util.tree_map_with_path(
        lambda path, base_leaf, other_leaf: change(base_leaf, other_leaf) if in_unit(claim, path) else base_leaf,
        base,
        other,
    )

"""Stacks the parameters of grid points along one axis. Leaves that all points share are stored once."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jaxdp.checks import check_leaves


def stack_params(points: Sequence[Any]) -> tuple[Any, Any]:
    """Splits the parameters of grid points into stacked leaves and leaves that all points share.

    Args:
        points: pytrees of the same structure.

    Returns:
        (varying, fixed), each with the structure of the points. If an array with at least one axis is the same object
        at every point, it is in `fixed`. Every other leaf is in `varying`, with a leading axis of grid points. Each
        leaf is None in the pytree that does not contain it.

    Raises:
        ValueError: if the points differ in structure, or a leaf in shape; if a leaf is no number or array,
            or JAX's integers cannot hold a value.
    """
    structure, all_leaves = _leaves(points)
    is_fixed = [_is_one_object(leaves) and np.ndim(leaves[0]) > 0 for leaves in all_leaves]
    pairs = list(zip(all_leaves, is_fixed, strict=True))
    return (
        jax.tree.unflatten(structure, [None if fixed else np.stack(leaves) for leaves, fixed in pairs]),
        jax.tree.unflatten(structure, [leaves[0] if fixed else None for leaves, fixed in pairs]),
    )


def stack_varying(points: Sequence[Any]) -> tuple[Any, Any]:
    """Stacks the leaves that vary between grid points, for `jax.vmap`.

    Args:
        points: pytrees of the same structure.

    Returns:
        (params, in_axes), each with the structure of the points. A leaf that is equal at all points is not stacked, and
        has None in `in_axes`. Every other leaf gets a leading axis of grid points, and has 0 in `in_axes`. If all
        leaves are equal at all points, every leaf gets the axis, as `jax.vmap` needs an axis.

    Raises:
        ValueError: if the points differ in structure, or a leaf in shape; if a leaf is no number or array,
            or JAX's integers cannot hold a value.
    """
    structure, all_leaves = _leaves(points)
    varies = [not (_is_one_object(leaves) or _are_equal(leaves)) for leaves in all_leaves]
    if not any(varies):
        varies = [True] * len(varies)
    stacked = [
        np.stack(leaves) if leaf_varies else leaves[0] for leaves, leaf_varies in zip(all_leaves, varies, strict=True)
    ]
    return jax.tree.unflatten(structure, stacked), jax.tree.unflatten(
        structure, [0 if leaf_varies else None for leaf_varies in varies]
    )


def _leaves(points: Sequence[Any]) -> tuple[Any, list[tuple[Any, ...]]]:
    """Returns the structure of the points, and each leaf's values at all points."""
    trees = [jax.tree.flatten(point) for point in points]
    structure = trees[0][1]
    for index, (_, other) in enumerate(trees):
        if other != structure:
            raise ValueError(
                f"params must have the same structure at all points, got {structure} and {other} at grid point {index}"
            )
    all_leaves = list(zip(*(leaves for leaves, _ in trees), strict=True))
    for leaves in all_leaves:
        for leaf in {id(leaf): leaf for leaf in leaves}.values():
            check_leaves("params", leaf)  # JAX would wrap integers of an array
        shapes = {np.shape(leaf) for leaf in leaves}
        if len(shapes) > 1:
            raise ValueError(f"params must have leaves of the same shape at all grid points, got {sorted(shapes)}")
    return structure, all_leaves


def _is_one_object(leaves: Sequence[Any]) -> bool:
    return all(leaf is leaves[0] for leaf in leaves)


def _are_equal(leaves: Sequence[Any]) -> bool:
    """Returns whether all leaves have the same dtype and bytes: 0.0 and -0.0 differ, NaN equals NaN."""
    first = np.asarray(leaves[0])
    return all(_content(np.asarray(leaf)) == _content(first) for leaf in leaves[1:])


def _content(array: np.ndarray) -> tuple[str, bytes]:
    return array.dtype.str, array.tobytes()

"""Where a result came from: enough to run it again, and to see what was claimed."""

import hashlib
import importlib.metadata
import math
import platform
from typing import Any

import jax
import numpy as np

PACKAGES = ("jaxdp", "jax", "jaxlib", "numpy", "optax")
LARGEST_LISTED = 64  # numbers; larger arrays are recorded by shape and hash


def provenance(
    key, devices, machine, tile_size, num_seeds, static_points, points, params, guarantees
) -> dict[str, Any]:
    """A JSON-ready record of a sweep.

    Args:
        key: root key.
        devices: where tiles ran, as text.
        machine: its `processor` and `settings`, which results' last bits depend on.
        tile_size: lanes in a tile.
        num_seeds: seeds for every grid point.
        static_points: one dict of static values for every program.
        points: one dict of values for every grid point.
        params: [program][grid point], the parameters that `points` became.
        guarantees: [program][grid point], dict from algorithm to Guarantee.

    Returns:
        A dict of strings, numbers, lists and dicts; infinity is the string "inf".
    """
    return {
        "versions": {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()},
        "devices": list(devices),
        **machine,
        "x64": bool(jax.config.read("jax_enable_x64")),
        "key": {"impl": str(jax.random.key_impl(key)), "data": np.asarray(jax.random.key_data(key)).tolist()},
        "tile_size": tile_size,
        "num_seeds": num_seeds,
        "programs": [
            {
                "static": plain(static),
                "points": [
                    {
                        "values": plain(point),
                        "params": {jax.tree_util.keystr(path): plain(leaf) for path, leaf in _leaves(own)},
                        "guarantees": {name: claim.to_dict() for name, claim in claims.items()},
                    }
                    for point, own, claims in zip(points, all_params, all_claims, strict=True)
                ],
            }
            for static, all_params, all_claims in zip(static_points, params, guarantees, strict=True)
        ],
    }


def plain(value: Any) -> Any:
    """A value as JSON has it: infinities and NaN as strings, large arrays as shape and hash, other objects as text."""
    if isinstance(value, dict):
        return {str(name): plain(item) for name, item in value.items()}
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        array = np.asarray(value)
        if array.size > LARGEST_LISTED:
            digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
            return {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": digest}
        return plain(array.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str) or value is None else repr(value)


def _leaves(tree: Any) -> list[tuple[Any, Any]]:
    return jax.tree_util.tree_leaves_with_path(tree)


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # a source tree that is not installed
        return "unknown"

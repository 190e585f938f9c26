"""The parts of a result's provenance as JSON has them: versions, keys, grid points, any value."""

import hashlib
import importlib.metadata
import math
import platform
from collections.abc import Mapping
from typing import Any

import jax
import numpy as np

from jaxdp.core import Guarantee

PACKAGES = ("jaxdp", "jax", "jaxlib", "numpy", "optax")
LARGEST_LISTED = 64  # numbers; larger arrays are recorded by shape and hash


def versions() -> dict[str, str]:
    """Versions of the packages that results depend on, and of Python."""
    return {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()}


def key_record(key: jax.Array) -> dict[str, Any]:
    """A typed key's implementation and data."""
    return {"impl": str(jax.random.key_impl(key)), "data": np.asarray(jax.random.key_data(key)).tolist()}


def point_record(values: Mapping[str, Any], params: Any, guarantees: Mapping[str, Guarantee]) -> dict[str, Any]:
    """A grid point: its values, the parameters that they became, and what each algorithm claims there."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {
        "values": plain(dict(values)),
        "params": {jax.tree_util.keystr(path): plain(leaf) for path, leaf in leaves},
        "guarantees": {name: claim.to_dict() for name, claim in guarantees.items()},
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


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # a source tree that is not installed
        return "unknown"

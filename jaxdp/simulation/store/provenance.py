"""Writes and reads the provenance of results (versions, keys, grid points), which is JSON."""

import hashlib
import importlib.metadata
import json
import math
import platform
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import jax
import numpy as np

from jaxdp.core import Guarantee
from jaxdp.core.guarantee import claim_from_dict
from jaxdp.random.threefry import key_from_data

if TYPE_CHECKING:
    import xarray as xr

PACKAGES = ("jaxdp", "jax", "jaxlib", "numpy", "optax", "scipy")
SHOWN = 60  # maximum number of characters of a damaged provenance in an error message
LARGEST_LISTED = 64  # arrays with more numbers are recorded by shape, dtype and hash
PRIVACY_UNIT = "privacy_unit"
EARLIER = {"sees": "adversary_view", "unit_leaves": "sensitive_fields"}  # names in stores up to format 3


class Point(NamedTuple):
    """A grid point of a program.

    Attributes:
        static: the static values of the program, keyed by name, as `as_json` returns them.
        values: all other values of the point, keyed by name, as `as_json` returns them.
        guarantees: the claims at the point, keyed by name: one claim for each algorithm. With `user_level`, each
            algorithm also has a second claim, for a person, except if its first claim is for a person already.
    """

    static: dict[str, Any]
    values: dict[str, Any]
    guarantees: dict[str, Guarantee]


class Provenance(NamedTuple):
    """The provenance of a result.

    Attributes:
        record: the whole provenance, as parsed JSON.
        num_seeds: number of seeds at each grid point.
        static_points: the static values of each program.
        points: all grid points, program by program.
    """

    record: Mapping[str, Any]
    num_seeds: int
    static_points: list[dict[str, Any]]
    points: list[Point]

    @property
    def key(self) -> jax.Array:
        """The sweep's root key."""
        return key_from_data(self.record["key"]["data"], self.record["key"]["impl"])


def provenance(results: "xr.Dataset") -> Provenance:
    """Reads the provenance in the attributes of results.

    Raises:
        ValueError: if the results have no provenance, or it is damaged.
    """
    if "provenance" not in getattr(results, "attrs", {}):
        got = "a Dataset without provenance" if hasattr(results, "data_vars") else type(results).__name__
        raise ValueError(f"results must be the Dataset of a sweep, which has its provenance, got {got}")
    text = results.attrs["provenance"]
    try:
        return _parse(json.loads(text))
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        raise ValueError(
            f"results must have the provenance that a sweep wrote, got {str(text)[:SHOWN]!r} ({type(error).__name__}: "
            f"{error})"
        ) from error


def _parse(record: Mapping[str, Any]) -> Provenance:
    return Provenance(
        record=record,
        num_seeds=record["num_seeds"],
        static_points=[program["static"] for program in record["programs"]],
        points=[
            Point(
                program["static"], point["values"], {name: _claim(claim) for name, claim in point["guarantees"].items()}
            )
            for program in record["programs"]
            for point in program["points"]
        ],
    )


def add_privacy_unit(dataset: "xr.Dataset") -> None:
    """Adds the coordinate `privacy_unit`, the unit of each claim, to a sweep's results. Captions of figures show it.

    The coordinate has a dimension for each static axis (an axis of a sweep with one program for each value), and one
    for algorithms. A dimension along which all units are equal is dropped. The unit is "" for algorithms without a
    claim. If the grid points of one program have several units, they are joined by " or ". If the results already have
    a variable with this name, nothing changes.
    """
    record = provenance(dataset)
    names = list(record.points[0].guarantees)
    if PRIVACY_UNIT in dataset.variables or not names:
        return
    sized = {str(dim): labels for dim, labels in dataset.coords.items() if labels.shape == (len(names),)}
    along = next((dim for dim, labels in sized.items() if labels.values.tolist() == names), None)
    # Without an axis of algorithms there is one learner, and its second claim, for a person, is left out.
    algorithms = names[:1] if along is None else names
    size = len(record.points) // len(record.static_points)
    programs = [record.points[first : first + size] for first in range(0, len(record.points), size)]
    units = np.array([[_unit(name, points) for name in algorithms] for points in programs], object)
    dims = [*record.static_points[0], *filter(None, [along])]
    units = units.reshape([dataset.sizes[dim] for dim in dims])
    for axis in reversed(range(units.ndim)):
        if (units == units.take([0], axis)).all():
            units = units.take(0, axis)
            del dims[axis]
    dataset.coords[PRIVACY_UNIT] = (dims, np.asarray(units, object))  # Zarr's standard has no text of a fixed length


def _unit(name: str, points: Sequence[Point]) -> str:
    claims = [point.guarantees[name] for point in points if name in point.guarantees]
    return " or ".join(dict.fromkeys(claim.privacy_unit for claim in claims if claim.is_private))


def versions() -> dict[str, str]:
    """Returns the versions of Python and of the packages in `PACKAGES`; "unknown" for a package without metadata."""
    return {name: _version(name) for name in PACKAGES} | {"python": platform.python_version()}


def key_record(key: jax.Array) -> dict[str, Any]:
    """Returns the implementation and the data of a typed key."""
    return {"impl": str(jax.random.key_impl(key)), "data": np.asarray(jax.random.key_data(key)).tolist()}


def point_record(values: Mapping[str, Any], params: Any, guarantees: Mapping[str, Guarantee]) -> dict[str, Any]:
    """Returns the record of a grid point: its values, its parameters, and its claims keyed by name."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {
        "values": as_json(dict(values)),
        "params": {jax.tree_util.keystr(path): as_json(leaf) for path, leaf in leaves},
        "guarantees": {name: claim.to_dict() for name, claim in guarantees.items()},
    }


def as_json(value: Any) -> Any:
    """Converts a value to JSON types.

    Infinities and NaN become strings. Large arrays are replaced by their shape, dtype and hash, and objects of other
    types by their text.
    """
    if isinstance(value, dict):
        return {str(name): as_json(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(part) for part in value]
    if isinstance(value, np.ndarray | np.generic | jax.Array):
        array = np.asarray(value)
        if array.size > LARGEST_LISTED:
            digest = hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()
            return {"shape": list(array.shape), "dtype": str(array.dtype), "sha256": digest}
        return as_json(array.tolist())
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, bool | int | float | str) or value is None else repr(value)


def _claim(record: Mapping[str, Any]) -> Guarantee:
    """Restores a claim from the result of `Guarantee.to_dict`, including results of earlier versions."""
    return claim_from_dict({EARLIER.get(name, name): value for name, value in record.items()})


def _version(name: str) -> str:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:  # a source tree that is not installed
        return "unknown"

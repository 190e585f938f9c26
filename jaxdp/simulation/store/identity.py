"""Records and compares the identity of a sweep: its grid, programs, claims, and all settings that change results."""

import hashlib
import importlib.metadata
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxdp.numerics.equations import equations, inner_programs
from jaxdp.simulation.store.processor import processor, settings
from jaxdp.simulation.store.provenance import as_json, key_record

LONGEST = 160  # maximum number of characters of a value in a text about a difference
# FORMAT is increased if the same programs and parameters would give other results (because lanes are numbered, seeded,
# padded to tiles or laid out differently), or if claims are recorded in other words. Every other change of jaxdp that
# changes results changes the programs, their parameters or their claims. jaxdp's version is therefore not recorded, and
# a release without such changes resumes older stores.
FORMAT = 4
LIBRARIES = ("jax", "jaxlib", "scipy")  # on a CPU, JAX factorizes matrices with SciPy's OpenBLAS


def program_hash(traced: Any, text: str) -> str:
    """Returns a hash of a program's StableHLO text and of the arrays that the program closes over.

    JAX may move constants out of the text, so programs with different constants can have the same text. The arrays are
    therefore hashed separately.

    Args:
        traced: result of `jax.jit(...).trace(...)`.
        text: text of `traced.lower()`.

    Raises:
        ValueError: if the program calls back to Python by `pure_callback` or `io_callback`.
    """
    digest = hashlib.sha256(text.encode())
    for constant in _constants(traced.jaxpr):
        _add(digest, constant)
    return digest.hexdigest()


def constant_bytes(traced: Any) -> int:
    """Returns the size in bytes of the arrays that a program, a result of `jax.jit(...).trace(...)`, closes over.

    Raises a ValueError as `program_hash` does.
    """
    return sum(getattr(constant, "nbytes", 0) for constant in _constants(traced.jaxpr))


def calls_back(jaxpr: Any) -> bool:
    """Returns whether a program has effects or calls Python functions, which its text does not identify."""
    effects = getattr(jaxpr, "jaxpr", jaxpr).effects
    return bool(effects) or any("callback" in equation.primitive.name for equation in equations(jaxpr))


def tree_hash(tree: Any) -> str:
    """Returns a hash of the path, dtype, shape and bytes of every leaf of a pytree."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        digest.update(jax.tree_util.keystr(path).encode())  # static parts are in the program's text
        _add(digest, leaf)
    return digest.hexdigest()


def identity(
    *,
    key: jax.Array,
    device: Any,
    compiler_options: Mapping[str, Any],
    tile_size: int,
    num_seeds: int,
    axes: Mapping[str, Sequence[Any]],
    static_axes: Mapping[str, Sequence[Any]],
    coords: Mapping[str, Any],
    outputs: Mapping[str, Any],
    programs: Mapping[str, Mapping[str, Any]],
) -> dict[str, Any]:
    """Returns a JSON-ready record of everything that results depend on.

    Args:
        key: root key.
        device: the device that runs tiles; results may differ in the last bits between kinds of devices.
        compiler_options: compiler options of the programs.
        tile_size: number of lanes in a tile.
        num_seeds: number of seeds at every grid point.
        axes: labels of the values of each axis.
        static_axes: labels of the values of each static axis.
        coords: coordinates of the run's dimensions, such as checkpoints.
        outputs: the names of dimensions, the shape and the dtype of each output of a lane.
        programs: for each program, by the text of its static values: hashes of the program, its parameters and its
            claims, and the number of BLAS threads if results depend on it.
    """
    kind = "" if device.platform == "cpu" else f": {device.device_kind}"
    return {
        "format": FORMAT,
        "order": [*static_axes, *axes],
        "axes": {name: as_json(list(labels)) for name, labels in axes.items()},
        "static_axes": {name: as_json(list(labels)) for name, labels in static_axes.items()},
        "num_seeds": num_seeds,
        "key": key_record(key),
        "tile_size": tile_size,
        "coords": {name: as_json(np.asarray(values).tolist()) for name, values in coords.items()},
        "outputs": {name: [list(out.dims), list(out.shape), str(out.dtype)] for name, out in outputs.items()},
        "device": f"{device.platform}{kind}",
        "processor": processor(device),
        "settings": settings(),
        "compiler_options": as_json(dict(compiler_options)),
        "x64": bool(jax.config.read("jax_enable_x64")),
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "programs": {name: dict(hashes) for name, hashes in programs.items()},
    }


def differences(record: Any, other: Any, name: str = "") -> list[str]:
    """Returns a text for every difference between two records, such as "num_seeds is 8 there, 16 here".

    "Here" is `record`, and "there" is `other`. `name` is the path of both in a larger record; empty for whole records.
    """
    if isinstance(record, dict) and isinstance(other, dict):
        return [
            text
            for part in (*other, *(part for part in record if part not in other))
            for text in differences(record.get(part), other.get(part), f"{name}.{part}" if name else part)
        ]
    if record == other:
        return []
    if name == "processor" and isinstance(record, str) and isinstance(other, str):
        old_words, new_words = (
            " ".join(word for word in one.split() if word not in two.split()) or "without more"
            for one, two in ((other, record), (record, other))
        )
        return [
            f"processor is {old_words} there, {new_words} here (another kind may give other last bits: resume on one "
            "of that kind, for example by SLURM's --constraint)"
        ]
    if name.startswith("settings."):
        return [f"{name} is {other} there, {record} here (may give other last bits: set it as it was then)"]
    if name.endswith(".program"):
        source = "the result of `build`: its code, its settings or an array that it closes over"
        return [f"{name} differs ({source}; or another version of jaxdp computed the store)"]
    if name.endswith(".params"):
        return [f"{name} differ (the parameters made from the grid's values)"]
    if name.endswith(".blas_threads"):
        return [f"{name} is {other} there, {record} here (large matrices: OPENBLAS_NUM_THREADS fixes it)"]
    if name.endswith(".guarantees"):
        return [f"{name} differ (the privacy claims)"]
    return [f"{name} is {_short(other)} there, {_short(record)} here"]


def differences_of_stores(sweep: Mapping[str, Any], stored: Mapping[str, Any]) -> str:
    """Returns the differences between the records of a sweep and of a store as text; empty if there are none.

    The text lists at most five differences, and the number of further differences.
    """
    sweep = json.loads(json.dumps(sweep))
    sweep_values, stored_values = (
        {name: value for name, value in one.items() if name != "programs"} for one in (sweep, stored)
    )
    # Programs are compared only if all other values are the same, as programs depend on some of them, such as the grid.
    texts = differences(sweep_values, stored_values) or differences(sweep["programs"], stored["programs"], "programs")
    more = f"; and {len(texts) - 5} more differences" if len(texts) > 5 else ""
    return "; ".join(texts[:5]) + more


def shortfalls(sweep: Mapping[str, Any], stored: Mapping[str, Any]) -> list[str]:
    """Returns the reasons why a store cannot be extended to a sweep, from the records of both; [] if there are none.

    Programs are not compared, because the text of a program changes if an axis grows.
    """
    sweep = json.loads(json.dumps(sweep))
    grid = ("axes", "static_axes", "num_seeds", "programs")
    sweep_values, stored_values = (
        {name: value for name, value in one.items() if name not in grid} for one in (sweep, stored)
    )
    reasons = differences(sweep_values, stored_values)
    for group in ("axes", "static_axes"):
        for name in stored[group]:
            lost = [label for label in stored[group][name] if label not in sweep[group].get(name, [])]
            if lost:
                reasons.append(f"{group}.{name} has {_short(lost)[1:-1]} there and not here")
    if sweep["num_seeds"] < stored["num_seeds"]:
        reasons.append(f"num_seeds is {stored['num_seeds']} there, {sweep['num_seeds']} here")
    return reasons


def check_format(path: Any, sweep: Mapping[str, Any], stored: Mapping[str, Any]) -> None:
    """Raises a ValueError if the records of a sweep and of a store have different formats."""
    if stored.get("format") != sweep["format"]:
        raise ValueError(
            f"store must have this version's format, got {path}, written by a version of jaxdp that recorded claims, "
            "results or the processor differently; jaxdp.open reads it, overwrite=True replaces it"
        )


def _constants(jaxpr: Any) -> Iterator[Any]:
    """Yields the arrays that a program closes over or has in its equations, in a fixed order."""
    if hasattr(jaxpr, "consts"):
        yield from jaxpr.consts
        jaxpr = jaxpr.jaxpr
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("pure_callback", "io_callback"):
            raise ValueError(
                f"build must not call back to Python in a sweep with a store or an executor, got "
                f"{equation.primitive.name}: a change of the called function could not be detected"
            )
        yield from (atom.val for atom in equation.invars if hasattr(atom, "val"))
        for inner in inner_programs(equation):
            yield from _constants(inner)
    yield from (atom.val for atom in jaxpr.outvars if hasattr(atom, "val"))


def _add(digest: Any, leaf: Any) -> None:
    if isinstance(leaf, jax.Array) and jax.numpy.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    array = np.ascontiguousarray(leaf)
    digest.update(f"{array.dtype} {array.shape}".encode())
    digest.update(array.tobytes())


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."

"""The identity of a sweep, which its store keeps: whatever can change a result, and nothing else."""

import hashlib
import importlib.metadata
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import jax
import numpy as np

from jaxdp.numerics.equations import equations, inner_programs
from jaxdp.simulation.store.processor import processor, settings
from jaxdp.simulation.store.provenance import plain

LONGEST = 160  # characters of a value in a difference's text
# Raised when equal programs and parameters come to mean other results: how lanes are numbered, seeded, padded to tiles
# and laid out in arrays; and when claims are written down in other words. All else that a version of jaxdp can change
# is in the programs, their parameters or what is claimed, so the version itself tells nothing, and a release that
# leaves those alone goes on with older stores.
FORMAT = 3
LIBRARIES = ("jax", "jaxlib", "scipy")  # SciPy's OpenBLAS is what JAX factorizes matrices with on a CPU


def program_hash(traced: Any, text: str) -> str:
    """A hash of a program: its StableHLO text, and the arrays that it closes over.

    Source text or a jaxpr's text cannot tell two closures apart. Neither can StableHLO where JAX hoists constants out
    of it, so the arrays are hashed by themselves.

    Args:
        traced: of `jax.jit(...).trace(...)`.
        text: of `traced.lower()`.
    """
    digest = hashlib.sha256(text.encode())
    for constant in _constants(traced.jaxpr):
        _add(digest, constant)
    return digest.hexdigest()


def constant_bytes(traced: Any) -> int:
    """Memory of the arrays that a program closes over.

    Args:
        traced: of `jax.jit(...).trace(...)`.
    """
    return sum(getattr(constant, "nbytes", 0) for constant in _constants(traced.jaxpr))


def calls_back(jaxpr: Any) -> bool:
    """Whether a program calls functions of Python while it runs, which its text does not tell apart."""
    effects = getattr(jaxpr, "jaxpr", jaxpr).effects
    return bool(effects) or any("callback" in equation.primitive.name for equation in equations(jaxpr))


def tree_hash(tree: Any) -> str:
    """A hash of a pytree: every leaf's place, dtype, shape and bytes."""
    digest = hashlib.sha256()
    for path, leaf in jax.tree_util.tree_leaves_with_path(tree):
        digest.update(jax.tree_util.keystr(path).encode())  # static parts show in the program's text
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
    """A JSON-ready record of all that results depend on.

    Args:
        key: root key.
        device: where tiles run; results may differ in the last bits between kinds of devices.
        compiler_options: that programs are compiled with.
        tile_size: lanes in a tile.
        num_seeds: seeds for every grid point.
        axes: labels of the grid's values.
        static_axes: labels of the static values.
        coords: of the run's own dimensions, as checkpoints.
        outputs: of a lane: dimensions' names, shape and dtype of each.
        programs: by the text of its static values, the hashes of each program, its parameters and its guarantees.
    """
    kind = "" if device.platform == "cpu" else f": {device.device_kind}"
    return {
        "format": FORMAT,
        "order": [*static_axes, *axes],
        "axes": {name: plain(list(labels)) for name, labels in axes.items()},
        "static_axes": {name: plain(list(labels)) for name, labels in static_axes.items()},
        "num_seeds": num_seeds,
        "key": {"impl": str(jax.random.key_impl(key)), "data": np.asarray(jax.random.key_data(key)).tolist()},
        "tile_size": tile_size,
        "coords": {name: plain(np.asarray(values).tolist()) for name, values in coords.items()},
        "outputs": {name: [list(out.dims), list(out.shape), str(out.dtype)] for name, out in outputs.items()},
        "device": f"{device.platform}{kind}",
        "processor": processor(device),
        "settings": settings(),
        "compiler_options": plain(dict(compiler_options)),
        "x64": bool(jax.config.read("jax_enable_x64")),
        "versions": {name: importlib.metadata.version(name) for name in LIBRARIES},
        "programs": {name: dict(hashes) for name, hashes in programs.items()},
    }


def differences(mine: Any, other: Any, name: str = "") -> list[str]:
    """How two records differ.

    Returns:
        One text for every part that differs, "NAME is OTHER there, MINE here"; none if they are the same.
    """
    if isinstance(mine, dict) and isinstance(other, dict):
        return [
            text
            for part in (*other, *(part for part in mine if part not in other))
            for text in differences(mine.get(part), other.get(part), f"{name}.{part}" if name else part)
        ]
    if mine == other:
        return []
    if name == "processor" and isinstance(mine, str) and isinstance(other, str):
        there, here = (
            " ".join(word for word in one.split() if word not in two.split()) or "without more"
            for one, two in ((other, mine), (mine, other))
        )
        return [
            f"processor is {there} there, {here} here (another kind may give other last bits: go on with one of that "
            "kind, as by SLURM's --constraint)"
        ]
    if name.startswith("settings."):
        return [f"{name} is {other} there, {mine} here (may give other last bits: set it as it was there)"]
    if name.endswith(".program"):
        return [f"{name} differs (what `build` returns: its code, its settings or an array that it closes over)"]
    if name.endswith(".params"):
        return [f"{name} differ (the parameters that the grid's values became)"]
    if name.endswith(".blas_threads"):
        return [f"{name} is {other} there, {mine} here (large matrices: OPENBLAS_NUM_THREADS fixes it)"]
    if name.endswith(".guarantees"):
        return [f"{name} differ (what is claimed)"]
    return [f"{name} is {_short(other)} there, {_short(mine)} here"]


def differences_of_stores(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> str:
    """How the record of a store differs from that of a sweep, as text; no text if they are the same.

    Args:
        mine: of the sweep.
        theirs: of the store.
    """
    mine = json.loads(json.dumps(mine))
    here, there = ({name: value for name, value in one.items() if name != "programs"} for one in (mine, theirs))
    # Another grid makes other programs.
    found = differences(here, there) or differences(mine["programs"], theirs["programs"], "programs")
    more = f"; and {len(found) - 5} more differences" if len(found) > 5 else ""
    return "; ".join(found[:5]) + more


def shortfalls(mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> list[str]:
    """Why a store cannot grow to a sweep, as far as their grids and seeds tell.

    Args:
        mine: the record of the sweep.
        theirs: that of the store.

    Returns:
        One text for every reason; none if the store's sweep is a part of this one.
    """
    mine = json.loads(json.dumps(mine))
    grid = ("axes", "static_axes", "num_seeds", "programs")
    here, there = ({name: value for name, value in one.items() if name not in grid} for one in (mine, theirs))
    found = differences(here, there)
    for group in ("axes", "static_axes"):
        for name in theirs[group]:
            lost = [label for label in theirs[group][name] if label not in mine[group].get(name, [])]
            if lost:
                found.append(f"{group}.{name} has {_short(lost)[1:-1]} there and not here")
    if mine["num_seeds"] < theirs["num_seeds"]:
        found.append(f"num_seeds is {theirs['num_seeds']} there, {mine['num_seeds']} here")
    return found


def check_format(path: Any, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> None:
    """Checks that a store is of this version's format.

    Args:
        path: of the store.
        mine: the record of the sweep.
        theirs: that of the store.

    Raises:
        ValueError: if not.
    """
    if theirs.get("format") != mine["format"]:
        raise ValueError(
            f"store must be of this version of jaxdp, got {path}, which another version wrote that recorded claims, "
            "results or the processor otherwise; jaxdp.open reads it, overwrite=True replaces it"
        )


def _constants(jaxpr: Any) -> Iterator[Any]:
    """Arrays in a program, in an order that the program fixes: closed over, and within its equations."""
    if hasattr(jaxpr, "consts"):
        yield from jaxpr.consts
        jaxpr = jaxpr.jaxpr
    for equation in jaxpr.eqns:
        if equation.primitive.name in ("pure_callback", "io_callback"):
            raise ValueError(
                f"build must not call back to Python in a sweep with a store or an executor, got "
                f"{equation.primitive.name}: nothing could tell whether results are of the same function"
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

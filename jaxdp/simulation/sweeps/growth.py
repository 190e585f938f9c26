"""Grows the store of a smaller sweep to a larger sweep, after checking that stored results remain valid."""

import json
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.store.files import Store
from jaxdp.simulation.store.growth import Growth
from jaxdp.simulation.store.identity import check_format, differences_of_stores, shortfalls
from jaxdp.simulation.store.locks import check_unwritten, creation_lock
from jaxdp.simulation.store.metadata import restore_root
from jaxdp.simulation.store.provenance import as_json
from jaxdp.simulation.store.seal import COMPUTED
from jaxdp.simulation.sweeps.labels import coordinate
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.schedule import VECTOR
from jaxdp.simulation.sweeps.source import Source

if TYPE_CHECKING:
    import xarray as xr

LANES_TRIED = 256  # minimum number of a program's lanes (repeated if fewer) that are tested in other positions of tiles
TURNS = (8, 24)  # numbers of positions by which lanes are moved


def grow_store(path: Path, plan: Plan, source: Source, template: "xr.Dataset") -> None:
    """Extends a store to all lanes of a sweep. Does nothing if there is no store, or if the store has this sweep.

    Args:
        path: path of the store.
        plan: plan of the sweep.
        source: computes the sweep.
        template: the sweep's dataset, with labels and provenance.

    Warns:
        RuntimeWarning: if the store's `zarr.json` was damaged and is written again.

    Raises:
        ValueError: if the store's sweep is not a part of this sweep, if tests of some lanes show that stored results do
            not equal this sweep's results bit for bit, or if the store is damaged. The store does not grow then.
        BlockingIOError: if the store must grow, and a process writes it.
        OSError: if files cannot be written.
    """
    with creation_lock(path):
        if not (path / COMPUTED).is_dir():
            return
        if restored := restore_root(path):
            warnings.warn(restored, RuntimeWarning, stacklevel=3)
        store, identity = Store(path), source.identity
        check_format(path, identity, store.identity)
        if not differences_of_stores(identity, store.identity):
            return
        check_unwritten(path)
        growth = _plan_growth(store, plan, source, template)
        if growth.layout.get("packed", False):  # this growth or an earlier growth moves lanes
            for program in range(len(plan.runs)):
                _check_positions(path, plan, source, program)
        changed_programs = _find_changed_programs(plan, identity, store.identity)
        for chunk, stored_values in _samples(store, growth.chunks, changed_programs, plan.tile_size):
            _check_bits(path, chunk, source.sample(chunk), stored_values)
        growth.write()


def can_grow(store: Store, plan: Plan, source: Source, template: "xr.Dataset") -> bool:
    """Returns whether a store can be extended to cover a sweep, according to all checks that do not run lanes."""
    try:
        _plan_growth(store, plan, source, template)
    except ValueError:
        return False
    return True


def _plan_growth(store: Store, plan: Plan, source: Source, template: "xr.Dataset") -> Growth:
    """Plans the growth of a store. Runs no lanes and writes nothing. Raises a ValueError if growth is not possible."""
    difference = "; ".join(shortfalls(source.identity, store.identity)) or differences_of_stores(
        source.identity_of(_plan_of_store(plan, store.identity)), store.identity
    )
    if difference:
        raise ValueError(f"store must be of a part of this sweep to grow, got {store.path}, where {difference}")
    growth = Growth(store, template, source.identity)
    if growth.moves(plan.tile_size):
        if plan.tile_size % VECTOR:
            raise ValueError(
                f"tile_size must be a multiple of {VECTOR} for this growth, got {plan.tile_size}: otherwise a lane's "
                "last bits can depend on its position in a tile, which changes in the larger sweep"
            )
        growth.layout["packed"] = True
    return growth


def _plan_of_store(plan: Plan, stored_identity: Mapping[str, Any]) -> Plan:
    """Makes the plan of the store's smaller sweep from the larger sweep's `plan` and the stored labels."""
    axes, static_axes = (
        {name: _values(values, stored_identity[group][name]) for name, values in plan_axes.items()}
        for group, plan_axes in (("axes", plan.axes), ("static_axes", plan.static_axes))
    )
    return Plan(
        plan.build,
        axes,
        static_axes,
        num_seeds=stored_identity["num_seeds"],
        key=plan.key,
        tile_size=plan.tile_size,
        devices=plan.devices,
    )


def _values(values: Sequence[Any], labels: Sequence[Any]) -> list[Any]:
    all_labels = json.loads(json.dumps(as_json(coordinate(values))))
    return [values[all_labels.index(label)] for label in labels]


def _find_changed_programs(plan: Plan, identity: Mapping[str, Any], stored_identity: Mapping[str, Any]) -> set[int]:
    """Returns the indices of programs with another text in the store. Programs not in the store are left out.

    The text contains the number of grid points, so it changes if an axis grows.
    """
    return {
        index
        for index in range(len(plan.runs))
        if (stored_hashes := stored_identity["programs"].get(plan.name(index)))
        and stored_hashes["program"] != identity["programs"][plan.name(index)]["program"]
    }


def _samples(
    store: Store, chunks: Sequence[Chunk], programs: set[int], max_lanes: int
) -> Iterator[tuple[Chunk, Mapping[str, np.ndarray]]]:
    """Yields stored lanes and their outputs, at most `max_lanes` of each program in `programs`."""
    remaining = set(programs)
    for chunk in chunks:
        if chunk.program in remaining and (lanes := store.read_first_lanes(chunk, max_lanes)) is not None:
            remaining.remove(chunk.program)
            yield lanes


def _check_positions(path: Path, plan: Plan, source: Source, program: int) -> None:
    """Checks that lanes give the same bits in other positions of tiles.

    XLA on CPU can compile the last lanes of a tile differently from all other lanes, even if the number of lanes is a
    multiple of the SIMD width. The last bits of contextual bandits then depend on the position.
    """
    total = -(-LANES_TRIED // plan.tile_size) * plan.tile_size
    lanes = np.resize(np.arange(min(plan.lanes.num_lanes, total)), total)

    def compute_shifted(turn: int) -> Mapping[str, np.ndarray]:
        runs = tuple((lane, lane + 1) for lane in np.roll(lanes, -turn).tolist())
        arrays = source.sample(Chunk(0, program, runs, (), packed=True))  # packed: runs in this order from position 0
        return {name: np.roll(values, turn, axis=0) for name, values in arrays.items()}

    first = compute_shifted(0)
    for turn in TURNS:
        for name, values in compute_shifted(turn).items():
            num_changed = sum(one.tobytes() != other.tobytes() for one, other in zip(values, first[name], strict=True))
            if num_changed:
                raise ValueError(
                    f"lanes must have the same bits in every position of a tile for the store to grow, got {path}, "
                    f"where {name} of {num_changed} of {total} lanes has other last bits in another position; sweep "
                    "the new values into a new store, or compute everything again with overwrite=True"
                )


def _check_bits(path: Path, chunk: Chunk, computed: Mapping[str, np.ndarray], stored: Mapping[str, np.ndarray]) -> None:
    for name, values in computed.items():
        stored_values = np.ascontiguousarray(stored[name])
        if values.tobytes() != stored_values.tobytes():
            raise ValueError(
                f"store must have the bits that the larger sweep gives, got {path}, where {name} of {chunk.num_lanes} "
                "lanes differs, as the program for more grid points was compiled differently; sweep the new values "
                "into a new store, or compute everything again with overwrite=True"
            )

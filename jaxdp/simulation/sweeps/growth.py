"""A store of a smaller sweep becomes one of a larger sweep, once it is certain that what is there stays right."""

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
from jaxdp.simulation.store.provenance import plain
from jaxdp.simulation.store.seal import COMPUTED
from jaxdp.simulation.sweeps.labels import coordinate
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.schedule import VECTOR
from jaxdp.simulation.sweeps.source import Source

if TYPE_CHECKING:
    import xarray as xr

LANES_TRIED = 256  # at least, of each program, in other places of tiles
TURNS = (8, 24)  # by so many places


def grow_store(path: Path, plan: Plan, source: Source, template: "xr.Dataset") -> None:
    """Makes room in a store for all of a sweep; nothing is to be done if there is no store, or it is of this sweep.

    Args:
        path: of the store.
        plan: of the sweep.
        source: what will compute it.
        template: its dataset, labelled and with provenance.

    Raises:
        ValueError: if the store is not of a part of this sweep, or its results would not have the bits that this sweep
            gives. The store is then as it was.
        BlockingIOError: if a process writes the store.
    """
    with creation_lock(path):
        if not (path / COMPUTED).is_dir():
            return
        if restored := restore_root(path):
            warnings.warn(restored, RuntimeWarning, stacklevel=3)
        store, mine = Store(path), source.identity
        theirs = store.identity
        check_format(path, mine, theirs)
        if not differences_of_stores(mine, theirs):
            return
        check_unwritten(path)
        wrong = "; ".join(shortfalls(mine, theirs)) or differences_of_stores(
            source.identity_of(_smaller(plan, theirs)), theirs
        )
        if wrong:
            raise ValueError(f"store must be of a part of this sweep to grow, got {path}, where {wrong}")
        growth = Growth(store, template, mine)
        if growth.moves(plan.tile_size):
            if plan.tile_size % VECTOR:
                raise ValueError(
                    f"tile_size must be a multiple of {VECTOR} for a store to grow so, got {plan.tile_size}: in others "
                    "a lane's last bits can depend on its place, which is another in a sweep of the whole"
                )
            growth.layout["packed"] = True
        if growth.layout.get("packed", False):  # now, or since it grew before
            for program in range(len(plan.runs)):
                _check_places(path, plan, source, program)
        for chunk, there in _samples(store, growth.chunks, _changed(plan, mine, theirs), plan.tile_size):
            _check_bits(path, chunk, source.sample(chunk), there)
        growth.write()


def _smaller(plan: Plan, theirs: Mapping[str, Any]) -> Plan:
    """The sweep of a store, made of the larger one's values."""
    axes, static_axes = (
        {name: _values(values, theirs[group][name]) for name, values in own.items()}
        for group, own in (("axes", plan.axes), ("static_axes", plan.static_axes))
    )
    return Plan(
        plan.build,
        axes,
        static_axes,
        num_seeds=theirs["num_seeds"],
        key=plan.key,
        tile_size=plan.tile_size,
        devices=plan.devices,
    )


def _values(values: Sequence[Any], labels: Sequence[Any]) -> list[Any]:
    """The values that have these labels."""
    known = json.loads(json.dumps(plain(coordinate(values))))
    return [values[known.index(label)] for label in labels]


def _changed(plan: Plan, mine: Mapping[str, Any], theirs: Mapping[str, Any]) -> set[int]:
    """The programs that more grid points make another: their text has the number of points."""
    return {
        index
        for index in range(len(plan.runs))
        if (there := theirs["programs"].get(plan.name(index)))
        and there["program"] != mine["programs"][plan.name(index)]["program"]
    }


def _samples(
    store: Store, chunks: Sequence[Chunk], programs: set[int], most: int
) -> Iterator[tuple[Chunk, Mapping[str, np.ndarray]]]:
    """For each of some programs, at most so many lanes that are computed, and what is there of them."""
    left = set(programs)
    for chunk in chunks:
        if chunk.program in left and (found := store.sample(chunk, most)) is not None:
            left.remove(chunk.program)
            yield found


def _check_places(path: Path, plan: Plan, source: Source, program: int) -> None:
    """Checks that lanes have the same bits in other places of tiles.

    XLA on CPU can compile the last lanes of a tile otherwise than those before them, also where their number is a
    multiple of what a processor adds at a time: lanes of contextual bandits move by last bits there.

    Raises:
        ValueError: if some have others.
    """
    total = -(-LANES_TRIED // plan.tile_size) * plan.tile_size
    lanes = np.resize(np.arange(min(plan.lanes.num_lanes, total)), total)

    def turned(turn: int) -> Mapping[str, np.ndarray]:
        runs = tuple((lane, lane + 1) for lane in np.roll(lanes, -turn).tolist())
        arrays = source.sample(Chunk(0, program, runs, (), packed=True))  # in their order, from the first place on
        return {name: np.roll(values, turn, axis=0) for name, values in arrays.items()}

    first = turned(0)
    for turn in TURNS:
        for name, values in turned(turn).items():
            moved = sum(one.tobytes() != other.tobytes() for one, other in zip(values, first[name], strict=True))
            if moved:
                raise ValueError(
                    f"lanes must keep their places in tiles for the store to grow, got {path}, where they would not, "
                    f"and {name} of {moved} of {total} lanes has other last bits in another place; sweep the new "
                    "values into a store of their own, or all anew by overwrite=True"
                )


def _check_bits(path: Path, chunk: Chunk, mine: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> None:
    for name, values in mine.items():
        there = np.ascontiguousarray(theirs[name])
        if values.tobytes() != there.tobytes():
            raise ValueError(
                f"store must have the bits that a sweep of the whole gives, got {path}, where {name} of "
                f"{chunk.num_lanes} lanes differs, as the program for more grid points was compiled otherwise; sweep "
                "the new values into a store of their own, or all anew by overwrite=True"
            )

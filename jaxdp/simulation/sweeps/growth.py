"""A store of a smaller sweep becomes one of a larger sweep, once it is certain that what is there stays right."""

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdp.simulation.store.chunks import Chunk
from jaxdp.simulation.store.files import COMPUTED, Store
from jaxdp.simulation.store.growth import Growth
from jaxdp.simulation.store.identity import check_format, differences_of_stores, shortfalls
from jaxdp.simulation.store.locks import check_unwritten, creation_lock
from jaxdp.simulation.store.metadata import METADATA
from jaxdp.simulation.store.provenance import plain
from jaxdp.simulation.sweeps.labels import coordinate
from jaxdp.simulation.sweeps.plan import Plan
from jaxdp.simulation.sweeps.schedule import VECTOR
from jaxdp.simulation.sweeps.source import Source

if TYPE_CHECKING:
    import xarray as xr


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
        if not (path / COMPUTED / METADATA).is_file():
            return
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
        if plan.tile_size % VECTOR and growth.moves(plan.tile_size):
            raise ValueError(
                f"tile_size must be a multiple of {VECTOR} for a store to grow so, got {plan.tile_size}: in others "
                "a lane's last bits can depend on its place, which is another in a sweep of the whole"
            )
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


def _check_bits(path: Path, chunk: Chunk, mine: Mapping[str, np.ndarray], theirs: Mapping[str, np.ndarray]) -> None:
    for name, values in mine.items():
        there = np.ascontiguousarray(theirs[name])
        if values.tobytes() != there.tobytes():
            raise ValueError(
                f"store must have the bits that a sweep of the whole gives, got {path}, where {name} of "
                f"{chunk.num_lanes} lanes differs, as the program for more grid points was compiled otherwise; sweep "
                "the new values into a store of their own, or all anew by overwrite=True"
            )

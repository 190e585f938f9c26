"""Run as a separate process: the store at every step of growing, as a writer leaves it that is killed there.

Usage: python -m tests.simulation.growth_steps FOLDER SMALL LARGE, with the store of a sweep, and the store of the
larger sweep that it becomes. A copy in FOLDER grows, and is copied again just before every step (a file opened for
writing, renamed, removed, or a folder made). Prints, as JSON, at how many steps the store was still the small one, at
how many the larger one, and the faults at others. A careless writer marks lanes before they are written.
"""

import json
import shutil
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from jaxdp.simulation.store.files import COMPUTED, Store, open_dataset
from jaxdp.simulation.store.growth import Growth
from jaxdp.simulation.store.metadata import sync_metadata
from jaxdp.simulation.store.nans import NanCount
from tests.simulation.store_steps import WRITING

TRIES = 20


class Copier:
    """Copies a folder before each change of a file in it."""

    def __init__(self, folder: Path, into: Path) -> None:
        self.folder, self.into, self.count, self.works = folder, into, 0, False
        self.lock = threading.Lock()
        sys.addaudithook(self.watch)

    def watch(self, event: str, arguments: tuple[Any, ...]) -> None:
        changes = event in ("os.rename", "os.remove", "os.mkdir") or (event == "open" and arguments[2] & WRITING)
        if self.works and changes and str(self.folder) in f"{arguments[0]} {arguments[1]}":
            with self.lock:  # Zarr writes in threads of its own
                self.copy()

    def copy(self) -> None:
        copy = self.into / str(self.count)
        for _ in range(TRIES):
            try:
                shutil.copytree(self.folder, copy)
                break
            except (shutil.Error, OSError):  # another thread went on with a change that was copied before
                shutil.rmtree(copy, ignore_errors=True)
        else:
            raise RuntimeError("the store changed in every copy")
        self.count += 1


def grow(path: Path, large: Path, careless: bool) -> None:
    """Grows a store as a sweep does, with results of the larger store."""
    whole = open_dataset(large)
    Growth(Store(path), whole.drop_vars(COMPUTED), Store(large).identity).write()
    store = Store(path)
    for chunk in store.unmark_damaged(store.chunks, NanCount()):
        point, seed = np.divmod(chunk.lanes, store.layout["sizes"][-1])
        arrays = {name: whole[name].values[point, seed] for name in store.layout["outputs"]}
        if careless and chunk.num_lanes == np.prod(chunk.sizes):
            store._arrays[COMPUTED][chunk.region] = np.ones(chunk.sizes, bool)
        store.commit(chunk, arrays)


def state(path: Path, small: Path, large: Path) -> str:
    """Returns the sweep that a store is of, or its faults."""
    found, was, whole = open_dataset(path), open_dataset(small), open_dataset(large)
    which = "small" if found.sizes == was.sizes else "large"
    expected = was if which == "small" else whole
    if not all(found[name].equals(expected[name]) for name in expected.coords) or found.attrs != expected.attrs:
        return "labels or provenance are not those of its sizes"
    store = Store(path)
    _, damaged = store.examine(store.chunks, NanCount())
    if damaged:
        return f"lost: {'; '.join(damaged.values())}"
    marks = found[COMPUTED]
    if not marks.sel(a=was.a, seed=was.seed).all():
        return "lost: marks of lanes that were there"
    if any((found[name] != expected[name]).where(marks, False).any() for name in ("x", "path")):
        return "lost: values of lanes that are marked"
    sync_metadata(path)  # as the next writer does
    own = xr.open_zarr(path, chunks=None, consolidated=False)
    return which if own.sizes == found.sizes else "arrays do not say what the store says"


def at_every_step(folder: Path, small: Path, large: Path, *, careless: bool) -> dict[str, Any]:
    """Grows a copy of a store, and looks at it before every step."""
    path, copies = folder / "s.zarr", folder / "copies"
    shutil.copytree(small, path)
    copies.mkdir()
    path.with_name(f"{path.name}.locks").mkdir()
    copier = Copier(path, copies)
    copier.works = True
    grow(path, large, careless)
    copier.works = False
    for index in range(copier.count):
        (copies / f"{index}.locks").mkdir()
    found = [state(copies / str(index), small, large) for index in range(copier.count)] + [state(path, small, large)]
    wrong = [f"step {step}: {text}" for step, text in enumerate(found) if text not in ("small", "large")]
    return {"kept": found.count("small"), "grown": found.count("large"), "wrong": wrong}


def main(folder: str, small: str, large: str) -> None:
    told = {
        name: at_every_step(Path(folder) / name, Path(small), Path(large), careless=name == "careless")
        for name in ("careful", "careless")
    }
    print(json.dumps(told))


if __name__ == "__main__":
    main(*sys.argv[1:])

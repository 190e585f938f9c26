"""Run as a separate process: a damaged chunk is computed again, by writers that are killed at every step.

Usage: python -m tests.simulation.store_steps FOLDER STORE... For each store and each step (a file opened for writing,
renamed, removed, or a folder made) a child process begins with a copy of the store in FOLDER, and is killed just before
that step. Prints, as JSON, by the stores' names the number of steps, the number of marked lanes at the end, and the
faults of the stores that the killed writers leave. The writer of a store named careless leaves a damaged chunk's mark.
"""

import json
import os
import shutil
import signal
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import zarr.codecs  # noqa: F401  (before the forks, each of which would import it again)

from jaxdp.simulation.store import lasting  # noqa: F401
from jaxdp.simulation.store.files import COMPUTED, Store
from jaxdp.simulation.store.nans import NanCount

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC


def kill_before(step: int, folder: Path) -> None:
    """Kills this process before its n-th change of a file in a folder."""
    left = step

    def watch(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        changes = event in ("os.rename", "os.remove", "os.mkdir") or (event == "open" and arguments[2] & WRITING)
        if changes and str(folder) in str(arguments[0]):
            left -= 1
            if left == 0:
                os.kill(os.getpid(), signal.SIGKILL)

    sys.addaudithook(watch)


def repair(path: Path, careless: bool) -> None:
    """Repairs a store as a sweep does, with other numbers."""
    store = Store(path)
    wanted = store.examine(store.chunks, NanCount())[0] if careless else store.unmark_damaged(store.chunks, NanCount())
    for chunk in wanted:
        arrays = {name: store._arrays[name] for name in store.layout["outputs"]}
        lanes, lead = chunk.num_lanes, len(chunk.block)
        store.commit(chunk, {n: np.ones((lanes, *a.shape[lead:]), a.dtype) for n, a in arrays.items()})


def wrong(path: Path, before: Path) -> str:
    """Returns the faults of a store, without those that existed before the writer came."""
    store = Store(path)
    missing, damaged = store.examine(store.chunks, NanCount())
    untouched = all(
        file.read_bytes() == (path / file.relative_to(before)).read_bytes()
        for file in before.rglob("*")
        if file.is_file()
    )
    if damaged:
        return "" if untouched else f"marked and not there: {', '.join(damaged.values())}"
    marked = np.asarray(store._arrays[COMPUTED][...]).sum()
    lost = sum(chunk.num_lanes for chunk in missing)
    return "" if marked + lost == store._arrays[COMPUTED].size else f"{marked} marked, {lost} missing"


def in_a_child(function: Any, *arguments: Any) -> tuple[int, str]:
    """Runs a function in a fork, which is made before Zarr has started any thread here. Returns its status and text."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            text = function(*arguments)
        os.write(write, (text or "").encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    return os.waitpid(child, 0)[1], text


def until_killed(step: int, path: Path, careless: bool) -> None:
    """Repairs a store, and dies on the way."""
    kill_before(step, path)
    repair(path, careless)


def marked(path: Path) -> str:
    """Returns the number of marked lanes of a store."""
    return str(Store(path).lanes_computed())


def killed_at_every_step(store: Path, path: Path) -> dict[str, Any]:
    """Repairs copies of a store, until a writer finishes."""
    step, found, status = 0, [], -1
    while status:
        step += 1
        shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(store, path)
        status, _ = in_a_child(until_killed, step, path, store.name == "careless")
        assert status == 0 or os.WTERMSIG(status) == signal.SIGKILL, status
        code, text = in_a_child(wrong, path, store)
        if code or text:
            found.append(f"step {step}: {text or code}")
    return {"steps": step - 1, "marked": int(in_a_child(marked, path)[1]), "wrong": found}


def main(folder: str, *stores: str) -> None:
    found = {Path(store).name: killed_at_every_step(Path(store), Path(folder) / "copy") for store in stores}
    print(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])

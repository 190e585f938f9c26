"""The files in which a store says what it is: one for all of it, and one for every array."""

import datetime
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxdp.simulation.store.locks import lock_folder

if TYPE_CHECKING:
    import xarray as xr

METADATA = "zarr.json"


def part_record(template: "xr.Dataset", sizes: Sequence[int]) -> dict[str, Any]:
    """What is told of a part that begins now: see `Store.parts`."""
    source = json.loads(template.attrs["provenance"])
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {
        "sizes": list(sizes),
        "when": when,
        **{name: source[name] for name in ("versions", "devices", "processor")},
    }


def sync_metadata(path: Path) -> None:
    """Has every array's own file say what the store's one file of metadata says.

    The two differ if a process was killed while the sweep grew. What is read by this module or by xarray is in the one
    file. The caller has the creation lock.
    """
    arrays = json.loads((path / METADATA).read_text()).get("consolidated_metadata", {}).get("metadata", {})
    for name, told in arrays.items():
        file = path / name / METADATA
        if json.loads(file.read_text()) != told:
            replace_file(path, file, json.dumps(told))


def replace_file(store: Path, file: Path, text: str) -> None:
    """Writes a file of a store in one step."""
    unfinished = lock_folder(store) / "unfinished.json"
    unfinished.write_text(text)
    os.replace(unfinished, file)

"""Reads, compares and restores the metadata files of a store: one for the store, and one for each array."""

import datetime
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jaxdp.simulation.store.locks import lock_folder
from jaxdp.simulation.store.seal import CHECKSUM, COMPUTED, METADATA, PROVENANCE, find_fault

if TYPE_CHECKING:
    import xarray as xr


def part_record(template: "xr.Dataset", sizes: Sequence[int]) -> dict[str, Any]:
    """Returns the record of a part of a sweep that starts now, with sizes, time, versions, devices and processor.

    `sizes` are the store's sizes along (*static axes, *axes, seed), including this part. Versions, devices and
    processor are read from the template's provenance.
    """
    source = json.loads(template.attrs["provenance"])
    when = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
    return {
        "sizes": list(sizes),
        "when": when,
        **{name: source[name] for name in ("versions", "devices", "processor")},
    }


def sync_metadata(path: Path) -> None:
    """Makes every array's metadata file equal to its entry in the store's metadata file.

    The files differ if a process was killed while the sweep grew, or if a file is damaged. Readers, including xarray,
    use only the store's file. The caller must have the creation lock, and must have checked the store's file.
    """
    arrays = json.loads((path / METADATA).read_text()).get("consolidated_metadata", {}).get("metadata", {})
    for name, array in arrays.items():
        file = path / name / METADATA
        if read_json(file) != array:
            file.parent.mkdir(exist_ok=True)
            replace_file(path, file, json.dumps(array))


def restore_root(path: Path) -> str:
    """Restores a damaged `zarr.json` of a store from its arrays' files. The caller must have the creation lock.

    Returns:
        A sentence about the restored file; empty if it was not damaged, is missing, or is not the file of a store.

    Raises:
        ValueError: if the files of the arrays do not describe the store.
    """
    root = path / METADATA
    fault = find_fault(read_json(root)) if root.exists() and (path / COMPUTED).is_dir() else ""
    if not fault:
        return ""
    arrays = {file.parent.name: read_json(file) for file in sorted(path.glob(f"*/{METADATA}"))}
    arrays = {name: array for name, array in arrays.items() if array and array.get("node_type") == "array"}
    content = {
        "attributes": {},
        "zarr_format": 3,
        "consolidated_metadata": {"kind": "inline", "must_understand": False, "metadata": arrays},
        "node_type": "group",
    }
    if find_fault(content) or CHECKSUM not in arrays[COMPUTED]["attributes"]:
        raise ValueError(
            f"store must be as a sweep wrote it, got {path}, where {root} is damaged ({fault}), and the files of its "
            "arrays do not describe the store; move the store away, and the same call makes a new store"
        )
    content["attributes"] = {PROVENANCE: arrays[COMPUTED]["attributes"][PROVENANCE]}
    replace_file(path, root, json.dumps(content))
    return f"{root} was damaged ({fault}); it is written again"


def read_json(file: Path) -> Any:
    """Returns the JSON content of a file; None if the file is missing or not JSON."""
    try:
        return json.loads(file.read_bytes())
    except (OSError, ValueError):
        return None


def replace_file(store: Path, file: Path, text: str) -> None:
    """Replaces the content of a store's `file` by `text` atomically, so that readers see the old or the new text.

    The caller must have the creation lock.
    """
    unfinished = lock_folder(store) / "unfinished.json"
    unfinished.write_text(text)
    os.replace(unfinished, file)

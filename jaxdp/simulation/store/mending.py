"""Repairs the store of a sweep: rewrites damaged labels, and adds the checksum that earlier versions lack."""

import json
import shutil
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdp.simulation.store.files import (
    Store,
    find_damaged_labels,
    import_zarr,
    open_files,
    stored_labels,
    write_labels,
)
from jaxdp.simulation.store.metadata import replace_file, sync_metadata
from jaxdp.simulation.store.seal import COMPUTED, LABELS, LAYOUT, METADATA, PROVENANCE, hash_labels, seal

if TYPE_CHECKING:
    import xarray as xr


def mend_labels(store: Store, template: "xr.Dataset") -> list[str]:
    """Rewrites the damaged coordinates of a store. The caller must have the creation lock.

    Args:
        store: store of the sweep.
        template: the sweep's dataset, with its labels.

    Returns:
        A sentence for each damaged coordinate.

    Raises:
        ValueError: if the rewritten labels do not have the stored hashes, because the sweep has other labels.
    """
    damaged = find_damaged_labels(store.path, open_files(store.path))
    if not damaged:
        return []
    arrays = import_zarr().open_group(open_files(store.path), mode="r+")
    for name in damaged:
        _write_again(store, arrays[name], name, _in_stored_order(store, template, name))
    for sentence in find_damaged_labels(store.path, open_files(store.path)).values():
        raise ValueError(f"store must be as a sweep wrote it, got {store.path}, where {sentence}")
    return [f"labels are damaged: {sentence}; they are written again" for sentence in damaged.values()]


def add_checksum(store: Store, template: "xr.Dataset") -> list[str]:
    """Adds the checksum to a store of an earlier version, after repairing its labels and provenance.

    The caller must have the creation lock, and no other process may write the store. Readers may continue.

    Args:
        store: store of the sweep.
        template: the sweep's dataset, with its labels and its provenance.

    Returns:
        A sentence for each damaged part, which is rewritten.
    """
    from jaxdp.simulation.store.lasting import stamp  # it needs Zarr

    files = open_files(store.path)
    root, sentences, labels = files.description, [], {}
    arrays = import_zarr().open_group(files, mode="r+")
    for name in map(str, template.coords):
        values = _in_stored_order(store, template, name)
        expected = hash_labels(stored_labels(arrays[name], values))
        try:
            is_whole = hash_labels(np.asarray(arrays[name][...])) == expected
        except Exception:  # codecs may raise anything on broken bytes
            is_whole = False
        if not is_whole:
            _write_again(store, arrays[name], name, values)
            sentences.append(f"labels are damaged: files in {store.path / name}; they are written again")
        labels[name] = hash_labels(np.asarray(arrays[name][...]))
    if not _same_points(root.get("attributes", {}).get(PROVENANCE), template.attrs[PROVENANCE]):
        root["attributes"] = {**root.get("attributes", {}), PROVENANCE: template.attrs[PROVENANCE]}
        sentences.append(f"the provenance in {store.path / METADATA} was damaged; it is written again")
    before = [*store.layout.get("before", []), list(stamp(store.path))]
    notes = root["consolidated_metadata"]["metadata"][COMPUTED]["attributes"]
    notes[LAYOUT] = json.dumps({**store.layout, LABELS: labels, "before": before})
    seal(root)
    replace_file(store.path, store.path / METADATA, json.dumps(root))
    sync_metadata(store.path)
    return sentences


def _in_stored_order(store: Store, template: "xr.Dataset", name: str) -> np.ndarray:
    """Returns the values of the template's coordinate `name`, in the order of the store."""
    dims = template[store.layout["outputs"][0]].dims
    indices = dict(zip(dims, store.layout.get("order", ()), strict=False)).get(name)
    values = template[name].values
    return values if indices is None else values[indices]


def _write_again(store: Store, array: Any, name: str, values: np.ndarray) -> None:
    shutil.rmtree(store.path / name / "c", ignore_errors=True)  # Zarr would read the damaged last chunk to extend it
    write_labels(array, values)


def _same_points(stored: Any, current: str) -> bool:
    """Returns whether two provenances have the same grid points and claims; versions and devices may differ."""
    try:
        return json.loads(stored)["programs"] == json.loads(current)["programs"]
    except (TypeError, KeyError, ValueError):
        return False

"""Computes the checksum of a store's description, which covers sweep, layout, provenance, labels and arrays.

The checksum is in the attributes of `computed`. These attributes are in two files, the store's metadata file and the
array's metadata file, so each of the two can be restored from the other. The checksum does not include arrays that
users add to a store.
"""

import hashlib
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

METADATA = "zarr.json"
COMPUTES_AGAIN = "; rerun the call that wrote it to compute it again"
COMPUTED = "computed"
IDENTITY = "identity"
LAYOUT = "layout"
PROVENANCE = "provenance"
CHECKSUM = "checksum"
LABELS = "labels"


def seal(root: dict[str, Any]) -> None:
    """Writes the checksum and a copy of the provenance into the parsed content of a store's `zarr.json`."""
    notes = _arrays(root)[COMPUTED]["attributes"]
    notes[PROVENANCE] = root["attributes"][PROVENANCE]
    notes[CHECKSUM] = _checksum(_arrays(root))


def find_fault(root: Any) -> str:
    """Returns the fault in the parsed content of a store's `zarr.json`; an empty text if there is no fault.

    A store of an earlier version has no checksum. It has no fault if all parts of the description are there.
    """
    try:
        arrays = _arrays(root)
        notes = arrays[COMPUTED]["attributes"]
        layout = json.loads(notes[LAYOUT])
        json.loads(notes[IDENTITY])
        if CHECKSUM not in notes and LABELS not in layout:
            return ""
        provenance = root.get("attributes", {}).get(PROVENANCE, notes[PROVENANCE])  # xarray's "a" mode removes it
        is_whole = notes[CHECKSUM] == _checksum(arrays) and provenance == notes[PROVENANCE]
        is_whole = is_whole and (root["zarr_format"], root["node_type"]) == (3, "group")
    except (KeyError, TypeError, AttributeError, ValueError):
        return "it is not what a sweep writes"
    return "" if is_whole else "its checksum is wrong"


def hash_labels(values: np.ndarray) -> str:
    """Returns a hash of the stored values of a coordinate."""
    is_text = values.dtype.kind in "OUT"
    kind = "text" if is_text else str(values.dtype)
    digest = hashlib.sha256(f"{kind} {values.shape} ".encode())
    text = json.dumps([str(value) for value in values]).encode() if is_text else b""
    digest.update(text or np.ascontiguousarray(values).data)
    return digest.hexdigest()


def _arrays(root: Any) -> dict[str, Any]:
    return root["consolidated_metadata"]["metadata"]


def _checksum(arrays: Mapping[str, Any]) -> str:
    """Returns the hash of the metadata of the sweep's arrays; the stored checksum is not hashed."""
    notes = arrays[COMPUTED]["attributes"]
    layout = json.loads(notes[LAYOUT])
    sweep_arrays = {name: arrays[name] for name in (*layout["outputs"], *layout[LABELS])}
    notes = {name: value for name, value in notes.items() if name != CHECKSUM}
    content = json.dumps([sweep_arrays, {**arrays[COMPUTED], "attributes": notes}], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()

"""Stores results on disk as a Zarr store, which xarray can read while a sweep writes it.

The variable `computed` is true for lanes with results. A chunk's results are written first, and its part of `computed`
last. Each file is replaced atomically. A lane that is marked as computed is therefore complete on disk, even if the
writer is killed. Every file of a chunk or a coordinate ends with a checksum; `seal` computes the checksum of the
store's description. Stores of earlier versions may lack checksums.
"""

import contextlib
import json
import math
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdp.simulation.store.chunks import Chunk, chunks
from jaxdp.simulation.store.metadata import METADATA
from jaxdp.simulation.store.nans import NanCount
from jaxdp.simulation.store.seal import (
    COMPUTED,
    COMPUTES_AGAIN,
    IDENTITY,
    LABELS,
    LAYOUT,
    PROVENANCE,
    find_fault,
    hash_labels,
)

if TYPE_CHECKING:
    import xarray as xr

REPAIR_ADVICE = "rerun the call that wrote it to repair it"


class Store:
    """An open store of a sweep.

    Attributes:
        path: path of the store's folder.
        layout: a parsed JSON record of the sweep's sizes, chunk sizes, outputs and parts, and of the labels' hashes.
        chunks: all chunks of the sweep.
    """

    def __init__(self, path: Path) -> None:
        """Opens a store; raises a ValueError if there is no store or its description is damaged."""
        self._files = open_files(path)
        self.path = path
        try:
            self._group = import_zarr().open_group(self._files, mode="r+")
            # Identity and layout are attributes of `computed`, not of the dataset, because datasets that are derived
            # from the results would inherit them.
            self._notes = self._group[COMPUTED].attrs
            self.layout = json.loads(str(self._notes[LAYOUT]))
            self.chunks = chunks(
                self.layout["static_sizes"],
                self.layout["sizes"],
                self.layout["chunk"],
                order=self.layout.get("order", ()),
                parts=[part["sizes"] for part in self.parts],
                packed=self.layout.get("packed", False),
            )
            # Zeros are also written, so that a missing file of a chunk with lanes marked as computed means lost data.
            # Zarr does not store this option.
            self._arrays = {
                name: self._group[name].with_config({"write_empty_chunks": True})
                for name in (*self.layout["outputs"], COMPUTED)
            }
            blocks = (*(1 for _ in self.layout["static_sizes"]), *self.layout["chunk"])
            sizes = (*self.layout["static_sizes"], *self.layout["sizes"])
            # If a user saved selected results as a store, that store has this layout, but other shapes.
            for name, array in self._arrays.items():
                lead = len(sizes)
                if array.shape[:lead] != sizes or array.chunks != (*blocks, *(max(1, n) for n in array.shape[lead:])):
                    raise ValueError(
                        f"{name} must have the shape and chunks of its layout, got {array.shape}, {array.chunks}"
                    )
        except Exception as error:  # a damaged description without a checksum (earlier versions) may raise any error
            raise ValueError(
                f"store must be as a sweep made it, got {path}, where {path / METADATA} is damaged: {error}"
            ) from error

    @property
    def identity(self) -> dict[str, Any]:
        """The identity of the sweep in the store: a parsed JSON record of everything that results depend on."""
        return json.loads(str(self._notes[IDENTITY]))

    @property
    def has_checksum(self) -> bool:
        """Whether the store's description has a checksum; stores of earlier versions have none."""
        return LABELS in self.layout

    @property
    def parts(self) -> list[dict[str, Any]]:
        """The parts in which a sweep was computed, in order. A sweep that grew has several parts.

        Each part has `sizes`, the stored sizes of (*static axes, *axes, seed) including the part; `when`, the UTC time
        of its start as ISO 8601 text (None if unknown); and `versions`, `devices` and `processor` of the call that
        started it (empty if unknown). A store of an earlier version has no parts until it grows.
        """
        return self.layout.get("parts", [])

    def examine(self, requested: Iterable[Chunk], nans: NanCount) -> tuple[list[Chunk], dict[Chunk, str]]:
        """Finds missing and unreadable lanes of the requested chunks, and adds all other lanes to the counter `nans`.

        Returns:
            The chunks that are missing, partly missing (with only their missing lanes) or unreadable (with all lanes);
            and a description of the damage of each unreadable chunk.
        """
        missing, damaged = [], {}
        for chunk in requested:
            try:
                done = self._read(COMPUTED, chunk)
                if done.any():
                    nans.add({name: self._read(name, chunk)[done] for name in self.layout["outputs"]})
            except OSError as error:
                damaged[chunk] = f"a chunk is damaged: {error}"
                missing.append(chunk)
                continue
            if not done.all():
                missing.append(chunk.only(~done) if done.any() else chunk)
        return missing, damaged

    def read_first_lanes(self, chunk: Chunk, max_lanes: int) -> tuple[Chunk, dict[str, np.ndarray]] | None:
        """Reads the first stored lanes of a chunk of a larger sweep to which this store may grow.

        Args:
            chunk: chunk of the larger sweep, with all its lanes.
            max_lanes: maximum number of lanes to return.

        Returns:
            The chunk with the lanes that were read, and their outputs keyed by name, each with a leading axis of lanes.
            None if the store has no computed lane of the chunk, or if the chunk cannot be read. An unreadable chunk is
            reported and repaired after the store has grown.
        """
        try:
            is_computed, *values = (self._read_stored_part(name, chunk) for name in (COMPUTED, *self.layout["outputs"]))
        except OSError:
            return None
        inside = tuple(slice(size) for size in is_computed.shape)
        selected = np.zeros(chunk.sizes, bool)
        selected[inside] = is_computed
        selected &= np.cumsum(selected).reshape(selected.shape) <= max_lanes
        if not selected.any():
            return None
        return chunk.only(selected), {
            name: output[selected[inside]] for name, output in zip(self.layout["outputs"], values, strict=True)
        }

    def unmark_damaged(self, requested: Iterable[Chunk], nans: NanCount) -> list[Chunk]:
        """Finds the chunks with missing lanes, and marks unreadable chunks as not computed.

        Stored lanes are added to the counter `nans`. The caller should compute and write the returned chunks.

        Warns:
            RuntimeWarning: for every chunk with an unreadable file, or with a missing file although lanes are marked as
                computed. The warning names the file.

        Returns:
            The chunks to compute: each requested chunk that is missing, partly missing (with only its missing lanes) or
            unreadable. After the call, none of their lanes is marked as computed.
        """
        missing, damaged = self.examine(requested, nans)
        for chunk, text in damaged.items():
            warnings.warn(f"{text}; it is computed again", RuntimeWarning, stacklevel=4)
            self._arrays[COMPUTED][chunk.region] = np.zeros(chunk.sizes, bool)  # before its files are replaced
        return missing

    def commit(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None:
        """Writes a chunk, and then marks it as computed.

        Args:
            chunk: a chunk from `unmark_damaged`, with all lanes of its block or all missing lanes.
            arrays: the chunk's outputs, each with a leading axis of the chunk's lanes.

        Raises:
            OSError: if the outputs cannot be written.
        """
        is_whole_block = chunk.num_lanes == math.prod(chunk.sizes)
        missing = None if is_whole_block else ~self._read(COMPUTED, chunk)
        for name, values in arrays.items():
            if missing is None:
                block = values.reshape(*chunk.sizes, *values.shape[1:])
            else:  # a file is replaced as a whole, so its existing lanes are rewritten
                block = self._read(name, chunk)
                block[missing] = values
            self._arrays[name][chunk.region] = block
        self._arrays[COMPUTED][chunk.region] = np.ones(chunk.sizes, bool)

    def check_files(self) -> None:
        """Raises a ValueError if a file is missing for a chunk with lanes that are marked as computed.

        Reads marks, but no results. Chunks with unreadable marks are skipped.
        """
        for chunk in self.chunks:
            if not self._count_marks(chunk):
                continue
            outputs = [name for name in self.layout["outputs"] if self._arrays[name].size]  # empty arrays have none
            lost = [file for name in outputs if not (file := self._file(name, chunk)).exists()]
            if lost:
                raise ValueError(
                    f"store must have the files of all lanes marked as computed, got {self.path}, where {lost[0]} is "
                    "missing; rerun the call that wrote it to compute it again"
                )

    def lanes_computed(self) -> int:
        """Returns the number of lanes marked as computed. Unreadable marks do not count.

        Raises:
            OSError: if the store was moved, removed or replaced, or has grown, since it was opened.
        """
        self._files.check_same()
        with contextlib.suppress(Exception):  # codecs may raise anything on broken bytes
            return int(np.asarray(self._arrays[COMPUTED][...]).sum())
        return int(sum(self._count_marks(chunk) for chunk in self.chunks))

    def clean(self) -> None:
        """Removes the unfinished files of killed processes. No process may write the store at the same time."""
        for file in self.path.rglob("*.partial"):
            if re.search(r"\.[0-9a-f]{32}\.partial$", file.name):  # Zarr's names of unfinished files
                file.unlink(missing_ok=True)

    def _count_marks(self, chunk: Chunk) -> int:
        try:
            return int(self._read(COMPUTED, chunk).sum())
        except OSError:
            return 0

    def _file(self, name: str, chunk: Chunk) -> Path:
        array = self._arrays[name]
        index = tuple(start // size for (start, _), size in zip(chunk.block, array.chunks, strict=False))
        index += (0,) * (array.ndim - len(index))
        return self.path / name / array.metadata.encode_chunk_key(index)

    def _read_stored_part(self, name: str, chunk: Chunk) -> np.ndarray:
        """Returns array `name` at the lanes of a chunk that lie within the store's arrays; other lanes are left out."""
        array = self._arrays[name]
        sizes = array.shape[: len(chunk.block)]
        block = tuple(
            (min(first, size), min(last, size)) for (first, last), size in zip(chunk.block, sizes, strict=True)
        )
        if any(first == last for first, last in block):
            return np.zeros((*(last - first for first, last in block), *array.shape[len(block) :]), array.dtype)
        return self._read(name, chunk._replace(block=block))

    def _read(self, name: str, chunk: Chunk) -> np.ndarray:
        array = self._arrays[name]
        if array.size == 0:
            return np.zeros((*chunk.sizes, *array.shape[len(chunk.block) :]), array.dtype)  # empty arrays have no files
        file = self._file(name, chunk)
        if not file.exists():
            if name == COMPUTED:
                return np.zeros(chunk.sizes, bool)
            raise OSError(f"{file} is missing")
        try:
            return np.asarray(array[chunk.region])
        except Exception as error:  # codecs may raise anything on broken bytes
            text = str(error)
            raise OSError(text if text.startswith(str(file)) else f"{file} cannot be read: {text}") from error


def open_files(path: Path, *, read_only: bool = False) -> Any:
    """Opens the folder of a store as a `LastingStore`, and checks the store's description (its `zarr.json`).

    Raises:
        ValueError: if there is no store, or its description is damaged.
    """
    from jaxdp.simulation.store.lasting import LastingStore  # it needs Zarr

    if not path.exists():
        raise ValueError(f"store must be the store of a sweep, got {path}, which does not exist")
    root = path / METADATA
    if not root.exists() and any(path.glob("*/c")):
        raise ValueError(
            f"store must be complete, got {path}, which has results but no description: a store was perhaps moved "
            "while it was written; continue at its new path, and remove this folder"
        )
    try:
        files = LastingStore(path, read_only=read_only)
    except OSError as error:
        raise ValueError(f"store must be the store of a sweep, got {path}, which is something else") from error
    if not (path / COMPUTED).is_dir():
        raise ValueError(f"store must be the store of a sweep, got {path}, which is something else")
    fault = find_fault(files.description)
    if fault:
        raise ValueError(
            f"store must be as a sweep wrote it, got {path}, where {root} is damaged ({fault}); {REPAIR_ADVICE}"
        )
    return files


def find_damaged_labels(path: Path, files: Any) -> dict[str, str]:
    """Returns a sentence about each coordinate with missing, unreadable or changed files, keyed by its name.

    In a store of an earlier version without hashes of its labels, it finds no damage.
    """
    group, damaged = import_zarr().open_group(files, mode="r"), {}
    for name, expected in json.loads(str(group[COMPUTED].attrs[LAYOUT])).get(LABELS, {}).items():
        try:
            if hash_labels(np.asarray(group[name][...])) != expected:
                damaged[name] = f"files in {path / name} are missing, or have changed"
        except OSError as error:
            damaged[name] = str(error).removesuffix(COMPUTES_AGAIN)  # labels are written again, not computed
        except Exception as error:  # codecs may raise anything on broken bytes
            damaged[name] = f"files in {path / name} cannot be read: {error}"
    return damaged


def stored_labels(array: Any, values: np.ndarray) -> np.ndarray:
    """Returns the values of a coordinate in their stored form: text as objects, numbers with the array's dtype."""
    return values.astype(object if values.dtype.kind == "U" else array.dtype)


def write_labels(array: Any, values: np.ndarray) -> None:
    """Writes the values of a coordinate to its Zarr array: text as objects, numbers with the array's dtype."""
    array.with_config({"write_empty_chunks": True})[...] = stored_labels(array, values)


def open_dataset(path: Path) -> "xr.Dataset":
    """Opens a store's results as an xarray dataset that reads values from disk when they are used.

    Reading raises an OSError if the store was moved, removed or replaced after it was opened. The values of an axis
    are in the order of the sweep's last call, which may differ from the stored order.

    Raises:
        ValueError: if there is no store, or its description or its labels are damaged.
    """
    import xarray  # here, to keep `import jaxdp` fast: xarray imports pandas

    files = open_files(path, read_only=True)
    with warnings.catch_warnings():
        ignore_format_warnings()
        for sentence in find_damaged_labels(path, files).values():
            raise ValueError(f"store must be as a sweep wrote it, got {path}, where {sentence}; {REPAIR_ADVICE}")
        results = xarray.open_zarr(files, chunks=None, consolidated=True)
    computed = results[COMPUTED]
    if PROVENANCE in computed.attrs:  # the dataset loses its copy if xarray saves more arrays in the store
        results.attrs[PROVENANCE] = computed.attrs[PROVENANCE]
    order = json.loads(computed.attrs[LAYOUT]).get("order", [])
    positions = {dim: np.argsort(stored) for dim, stored in zip(computed.dims, order, strict=bool(order)) if stored}
    return results.isel(positions)


def ignore_format_warnings() -> None:
    """Ignores Zarr's warnings about version 3 of its format."""
    warnings.filterwarnings("ignore", message="Consolidated metadata is currently not part")
    warnings.filterwarnings("ignore", message="The data type .* does not have a Zarr V3 specification")


def import_zarr() -> Any:
    """Returns the module `zarr`, which is imported only when a store is used."""
    import zarr

    return zarr

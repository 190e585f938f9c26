"""Extends a store to a larger sweep.

Existing chunks do not change. First the coordinates of the larger sweep are written; a process that reads the smaller
sweep still reads only the old values. Then the store's metadata file, which contains all shapes, the sweep's identity
and the provenance, is replaced atomically. If the process is killed, the store has either the smaller or the larger
sweep.
"""

import json
import shutil
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdp.simulation.store.chunks import Chunk, chunks
from jaxdp.simulation.store.files import Store, find_damaged_labels, import_zarr, open_files, write_labels
from jaxdp.simulation.store.metadata import part_record, replace_file, sync_metadata
from jaxdp.simulation.store.seal import COMPUTED, IDENTITY, LABELS, LAYOUT, METADATA, hash_labels, seal

if TYPE_CHECKING:
    import xarray as xr


class Growth:
    """The change of a store to a larger sweep.

    Attributes:
        store: the store before the change.
        layout: the layout of the store after the change.
    """

    def __init__(self, store: Store, template: "xr.Dataset", identity: Mapping[str, Any]) -> None:
        """Determines the positions of all values; writes nothing.

        Args:
            store: store of a sweep that is a part of the larger sweep.
            template: a dataset with the larger sweep's variables, coordinates and attributes; see `open_or_create`.
            identity: identity of the larger sweep.

        Raises:
            ValueError: if the type of an axis's stored labels cannot be changed so that it fits the new values, or if a
                user saved other arrays in the store along an axis that grows.
        """
        self.store, self._template, self._identity = store, template, identity
        lead = list(next(iter(template.data_vars.values())).dims)[: len(store.chunks[0].block)]
        self._old_positions = {str(dim): self._find_old_values(str(dim), store.identity) for dim in lead}
        self._positions = {dim: self._order(dim, store.identity) for dim in self._old_positions}
        sizes = [len(positions) for positions in self._positions.values()]
        num_static = len(store.layout["static_sizes"])
        old_sizes = [*store.layout["static_sizes"], *store.layout["sizes"]]
        parts = store.parts or [{"sizes": old_sizes, "when": None, "versions": {}, "devices": [], "processor": ""}]
        self.layout = {
            **store.layout,
            "static_sizes": sizes[:num_static],
            "sizes": sizes[num_static:],
            "order": [None if order == sorted(order) else order for order in self._positions.values()],
            "parts": [*parts, part_record(template, sizes)] if sizes != old_sizes else parts,
        }
        self._kinds = {
            dim: self._kind(dim)
            for dim, size, before in zip(self._positions, sizes, old_sizes, strict=True)
            if size != before
        }
        self._check_others()

    def moves(self, tile_size: int) -> bool:
        """Returns whether a new run of the larger sweep would change a stored lane's position in its tile."""
        number = np.zeros((), np.int64)
        by_axis = list(self._old_positions.values())[len(self.layout["static_sizes"]) :]
        for positions, size in zip(by_axis, self.layout["sizes"], strict=True):
            number = number[..., None] * size + np.asarray(positions)
        return bool(((number.ravel() - np.arange(number.size)) % tile_size).any())

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks of the larger sweep, with `part` 0 and `packed` False."""
        layout = self.layout
        return chunks(layout["static_sizes"], layout["sizes"], layout["chunk"], order=layout["order"])

    def write(self) -> None:
        """Turns the store into a store of the larger sweep.

        It writes labels, shapes, identity and provenance, and does not change stored lanes. The caller must have the
        creation lock, and no process may write the store.

        Raises:
            OSError: if files cannot be written. The store then has either the smaller or the larger sweep.
        """
        from jaxdp.simulation.store.lasting import stamp  # it needs Zarr

        path = self.store.path
        root = json.loads((path / METADATA).read_text())
        arrays = root["consolidated_metadata"]["metadata"]
        sizes = [len(positions) for positions in self._positions.values()]
        for name in (*self.layout["outputs"], COMPUTED):
            arrays[name]["shape"][: len(sizes)] = sizes
        for dim in find_damaged_labels(path, open_files(path)):
            shutil.rmtree(path / dim / "c", ignore_errors=True)  # Zarr would read the damaged last chunk to extend it
        labels = dict(self.layout.get(LABELS, {}))
        for dim in self._kinds:
            arrays[dim], labels[dim] = self._extend(dim, self._positions[dim], arrays[dim])
        coords = import_zarr().open_group(path, mode="r")
        for name in set(map(str, self._template.coords)) - set(labels):  # stores of earlier versions lack the hashes
            labels[name] = hash_labels(np.asarray(coords[name][...]))
        before = [*self.layout.get("before", []), list(stamp(path))]
        arrays[COMPUTED]["attributes"] = {
            IDENTITY: json.dumps(self._identity),
            LAYOUT: json.dumps({**self.layout, LABELS: labels, "before": before}),
        }
        root["attributes"] = {**root.get("attributes", {}), **self._template.attrs}
        seal(root)
        replace_file(path, path / METADATA, json.dumps(root))
        sync_metadata(path)

    def _find_old_values(self, dim: str, identity: Mapping[str, Any]) -> list[int]:
        """Returns the positions of an axis's old values in the larger sweep.

        `identity` is the smaller sweep's identity.
        """
        stored_labels = identity["axes"].get(dim, identity["static_axes"].get(dim))
        if stored_labels is None:  # seeds
            return list(range(identity["num_seeds"]))
        labels = self._identity["axes"].get(dim, self._identity["static_axes"].get(dim))
        return [labels.index(label) for label in stored_labels]

    def _order(self, dim: str, identity: Mapping[str, Any]) -> list[int]:
        """Returns the positions of an axis's values in the larger sweep, in stored order, with old values first.

        `identity` is the smaller sweep's identity.
        """
        old_positions = self._old_positions[dim]
        dims = [*identity["order"], "seed"]
        order = self.store.layout.get("order", [None] * len(dims))[dims.index(dim)]
        stored = old_positions if order is None else [old_positions[index] for index in order]
        return [*stored, *(index for index in range(self._template.sizes[dim]) if index not in set(old_positions))]

    def _kind(self, dim: str) -> tuple[str, Any] | None:
        """Returns the Zarr type and the fill value that coordinate `dim` needs to store new values.

        Returns None if the present type is sufficient. Raises a ValueError if the type would have to change between
        text and numbers, or to change a second time.
        """
        metadata, values = self._metadata()[dim], self._template[dim].values
        if values.dtype.kind == "U":
            if metadata["data_type"] == "string":
                return None
        elif metadata["data_type"] != "string":
            if np.can_cast(values.dtype, np.dtype(metadata["data_type"])):
                return None
            if metadata["chunk_key_encoding"]["configuration"]["separator"] == "/":  # files named with "." are unused
                return str(values.dtype), "NaN" if values.dtype.kind == "f" else values.dtype.type(0).item()
        raise ValueError(
            f"store must have a type for {dim} that holds the new values, got {self.store.path}, where it is "
            f"{metadata['data_type']}, for {values.tolist()}; sweep the new values into a new store, or compute "
            "everything again with overwrite=True"
        )

    def _check_others(self) -> None:
        """Raises a ValueError if an array that does not belong to the sweep has an axis that grows."""
        sweep_arrays = {*self.layout["outputs"], COMPUTED, *self._positions}
        for name, metadata in self._metadata().items():
            along = set(metadata.get("dimension_names") or ()) & set(self._kinds)
            if name not in sweep_arrays and along:
                raise ValueError(
                    f"store must have no arrays except the sweep's along {', '.join(sorted(along))} to grow, got "
                    f"{self.store.path} with {name}; move it elsewhere"
                )

    def _metadata(self) -> dict[str, Any]:
        """Returns the metadata of each array from the store's `zarr.json`, keyed by name."""
        return json.loads((self.store.path / METADATA).read_text())["consolidated_metadata"]["metadata"]

    def _extend(self, dim: str, positions: Sequence[int], metadata: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Writes the template's values of coordinate `dim` at `positions`, in this order.

        `metadata` is the coordinate's metadata in the store. Returns the new metadata and the hash of the values.
        """
        import zarr
        from zarr.core.array import AsyncArray
        from zarr.core.metadata import ArrayV3Metadata
        from zarr.storage import LocalStore, StorePath

        values = self._template[dim].values[list(positions)]
        metadata, kind = {**metadata, "shape": [len(positions)]}, self._kinds[dim]
        if values.dtype.kind != "U" and kind is not None:  # written to new files; the smaller sweep's files stay
            metadata |= {"data_type": kind[0], "fill_value": kind[1]}
            metadata["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "."}}
        where = StorePath(LocalStore(self.store.path), dim)
        array_metadata = ArrayV3Metadata.from_dict(dict(metadata))
        array = zarr.Array(AsyncArray(metadata=array_metadata, store_path=where))
        write_labels(array, values)
        return metadata, hash_labels(np.asarray(array[...]))

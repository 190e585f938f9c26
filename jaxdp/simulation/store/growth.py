"""Room in a store for a larger sweep. What is there stays where it is; one file, replaced in one step, tells of more.

Files that the larger sweep needs are written first: coordinates, of which a reader of the smaller sweep reads the part
that it knows. Then the store's one file of metadata is replaced, which holds all shapes, what the sweep is, and its
provenance. A process that is killed leaves the smaller sweep or the larger one, and nothing between them.
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
    """What a store becomes.

    Attributes:
        store: as it is.
        layout: as it will be.
    """

    def __init__(self, store: Store, template: "xr.Dataset", identity: Mapping[str, Any]) -> None:
        """Finds where everything will be, and writes nothing.

        Args:
            store: of a sweep that is a part of the larger one.
            template: a dataset of the larger sweep's variables, coordinates and attributes, as `open_or_create` has it.
            identity: of the larger sweep.

        Raises:
            ValueError: if values of an axis are of a kind that the store has no room for, or the store has arrays of
                others along an axis that grows.
        """
        self.store, self._template, self._identity = store, template, identity
        lead = list(next(iter(template.data_vars.values())).dims)[: len(store.chunks[0].block)]
        self._known = {str(dim): self._kept(str(dim), store.identity) for dim in lead}
        self._places = {dim: self._order(dim, store.identity) for dim in self._known}
        sizes = [len(places) for places in self._places.values()]
        num_static = len(store.layout["static_sizes"])
        old = [*store.layout["static_sizes"], *store.layout["sizes"]]
        parts = store.parts or [{"sizes": old, "when": None, "versions": {}, "devices": [], "processor": ""}]
        self.layout = {
            **store.layout,
            "static_sizes": sizes[:num_static],
            "sizes": sizes[num_static:],
            "order": [None if own == sorted(own) else own for own in self._places.values()],
            "parts": [*parts, part_record(template, sizes)] if sizes != old else parts,
        }
        self._kinds = {
            dim: self._kind(dim) for dim, new, size in zip(self._places, sizes, old, strict=True) if new != size
        }
        self._check_others()

    def moves(self, tile_size: int) -> bool:
        """Whether a lane that is there has another place in its tile in one sweep of the whole."""
        number = np.zeros((), np.int64)
        own = list(self._known.values())[len(self.layout["static_sizes"]) :]
        for known, size in zip(own, self.layout["sizes"], strict=True):
            number = number[..., None] * size + np.asarray(known)
        return bool(((number.ravel() - np.arange(number.size)) % tile_size).any())

    @property
    def chunks(self) -> list[Chunk]:
        """All chunks of the larger sweep."""
        layout = self.layout
        return chunks(layout["static_sizes"], layout["sizes"], layout["chunk"], order=layout["order"])

    def write(self) -> None:
        """Makes the store one of the larger sweep. The caller has the creation lock, and no process writes the store.

        Raises:
            OSError: if files cannot be written. The store is then as it was.
        """
        from jaxdp.simulation.store.lasting import stamp  # it needs Zarr

        path = self.store.path
        told = json.loads((path / METADATA).read_text())
        arrays = told["consolidated_metadata"]["metadata"]
        sizes = [len(places) for places in self._places.values()]
        for name in (*self.layout["outputs"], COMPUTED):
            arrays[name]["shape"][: len(sizes)] = sizes
        for dim in find_damaged_labels(path, open_files(path)):
            shutil.rmtree(path / dim / "c", ignore_errors=True)  # Zarr would read the last one to fill it up
        labels = dict(self.layout.get(LABELS, {}))
        for dim in self._kinds:
            arrays[dim], labels[dim] = self._extend(dim, self._places[dim], arrays[dim])
        coords = import_zarr().open_group(path, mode="r")
        for name in set(map(str, self._template.coords)) - set(labels):  # of an earlier version
            labels[name] = hash_labels(np.asarray(coords[name][...]))
        before = [*self.layout.get("before", []), list(stamp(path))]
        arrays[COMPUTED]["attributes"] = {
            IDENTITY: json.dumps(self._identity),
            LAYOUT: json.dumps({**self.layout, LABELS: labels, "before": before}),
        }
        told["attributes"] = {**told.get("attributes", {}), **self._template.attrs}
        seal(told)
        replace_file(path, path / METADATA, json.dumps(told))
        sync_metadata(path)

    def _kept(self, dim: str, identity: Mapping[str, Any]) -> list[int]:
        """The places of the smaller sweep's values in the larger one's coordinate."""
        there = identity["axes"].get(dim, identity["static_axes"].get(dim))
        if there is None:  # seeds
            return list(range(identity["num_seeds"]))
        here = self._identity["axes"].get(dim, self._identity["static_axes"].get(dim))
        return [here.index(label) for label in there]

    def _order(self, dim: str, identity: Mapping[str, Any]) -> list[int]:
        """The places in the larger sweep's coordinate of what is stored: what was there first, as it is there."""
        known = self._known[dim]
        dims = [*identity["order"], "seed"]
        order = self.store.layout.get("order", [None] * len(dims))[dims.index(dim)]
        stored = known if order is None else [known[place] for place in order]
        return [*stored, *(place for place in range(self._template.sizes[dim]) if place not in set(known))]

    def _kind(self, dim: str) -> tuple[str, Any] | None:
        """The type and the fill value of a coordinate that the larger sweep's values need; None where they fit in.

        Raises:
            ValueError: if the store cannot have them.
        """
        told, values = self._told()[dim], self._template[dim].values
        if values.dtype.kind == "U":
            if told["data_type"] == "string":
                return None
        elif told["data_type"] != "string":
            if np.can_cast(values.dtype, np.dtype(told["data_type"])):
                return None
            if told["chunk_key_encoding"]["configuration"]["separator"] == "/":  # files of another name are free
                return str(values.dtype), "NaN" if values.dtype.kind == "f" else values.dtype.type(0).item()
        raise ValueError(
            f"store must have room for the values of {dim} to grow, got {self.store.path}, where they are "
            f"{told['data_type']}, for {values.tolist()}; sweep the new values into a store of their own, or all anew "
            "by overwrite=True"
        )

    def _check_others(self) -> None:
        """Checks that nobody else's arrays lie along an axis that grows: nothing could be read of a store then.

        Raises:
            ValueError: if some do.
        """
        own = {*self.layout["outputs"], COMPUTED, *self._places}
        for name, told in self._told().items():
            along = set(told.get("dimension_names") or ()) & set(self._kinds)
            if name not in own and along:
                raise ValueError(
                    f"store must have nothing but the sweep's arrays along {', '.join(sorted(along))} to grow, got "
                    f"{self.store.path}, where {name} is; remove it, or keep it elsewhere"
                )

    def _told(self) -> dict[str, Any]:
        """What the store's file of metadata says of each array."""
        return json.loads((self.store.path / METADATA).read_text())["consolidated_metadata"]["metadata"]

    def _extend(self, dim: str, places: Sequence[int], told: Mapping[str, Any]) -> tuple[dict[str, Any], str]:
        """Writes a coordinate's values, those that are there as they are.

        Args:
            dim: the coordinate's name.
            places: of the stored values in the larger sweep's coordinate.
            told: the array's metadata.

        Returns:
            Its metadata with these values, and their hash.
        """
        import zarr
        from zarr.core.array import AsyncArray
        from zarr.core.metadata import ArrayV3Metadata
        from zarr.storage import LocalStore, StorePath

        values = self._template[dim].values[list(places)]
        told, kind = {**told, "shape": [len(places)]}, self._kinds[dim]
        if (
            values.dtype.kind != "U" and kind is not None
        ):  # in a file of its own, beside that of the smaller sweep's values
            told |= {"data_type": kind[0], "fill_value": kind[1]}
            told["chunk_key_encoding"] = {"name": "default", "configuration": {"separator": "."}}
        where = StorePath(LocalStore(self.store.path), dim)
        metadata = ArrayV3Metadata.from_dict(dict(told))
        array = zarr.Array(AsyncArray(metadata=metadata, store_path=where))
        write_labels(array, values)
        return told, hash_labels(np.asarray(array[...]))

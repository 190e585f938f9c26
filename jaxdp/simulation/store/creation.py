"""A store is made, or opened by the sweep whose results it holds, which mends what is damaged."""

import json
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdp.simulation.store.files import Store, ignore_format_warnings, import_zarr
from jaxdp.simulation.store.identity import check_format, differences_of_stores, shortfalls
from jaxdp.simulation.store.locks import creation_lock, lock_folder
from jaxdp.simulation.store.mending import add_checksum, mend_labels
from jaxdp.simulation.store.metadata import part_record, restore_root, sync_metadata
from jaxdp.simulation.store.seal import COMPUTED, IDENTITY, LABELS, LAYOUT, METADATA, hash_labels, seal

if TYPE_CHECKING:
    import xarray as xr

GROWS = "grow=True keeps it and adds what is missing, "


def open_or_create(
    path: Path,
    template: "xr.Dataset",
    identity: Mapping[str, Any],
    chunk: Callable[[], Sequence[int]],
    *,
    num_static: int,
    overwrite: bool,
    alone: bool,
) -> Store:
    """Opens the store of a sweep, or makes it.

    Args:
        path: where.
        template: a dataset of the sweep's variables, whose values are not used, coordinates and attributes.
        identity: from `identity.identity`.
        chunk: the shape of a chunk along (*axes, seed); asked only if the store is made here.
        num_static: the number of static axes, which come first.
        overwrite: replace a store that is there. The caller has its lock.
        alone: whether no other process can write the store, so that it may get a checksum if it has none.

    Raises:
        ValueError: if what is there is not a store, or that of another configuration, with the difference.
    """
    with creation_lock(path):
        unfinished, replaced = (lock_folder(path) / name for name in ("unfinished", "replaced"))
        if overwrite and path.exists():
            restore_root(path)
            Store(path)  # nothing but a store is replaced
        if overwrite or not path.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            _create(unfinished, template, identity, chunk(), num_static)
            if path.exists():
                shutil.rmtree(replaced, ignore_errors=True)
                path.rename(replaced)
            unfinished.rename(path)
            shutil.rmtree(replaced, ignore_errors=True)
        restored = restore_root(path)
        if restored:
            warnings.warn(restored, RuntimeWarning, stacklevel=3)
        store = Store(path)
        sync_metadata(path)
    check_same_sweep(store, identity)
    with creation_lock(path):
        sentences = add_checksum(store, template) if alone and not store.has_checksum else mend_labels(store, template)
        for sentence in sentences:
            warnings.warn(sentence, RuntimeWarning, stacklevel=3)
        return Store(path)


def stored_tile_size(path: Path) -> int | None:
    """Returns the tile size of the store at a path; None if there is none that can be read."""
    if not path.exists():
        return None
    try:
        return int(Store(path).identity["tile_size"])
    except (KeyError, TypeError, ValueError):  # the sweep says later what is wrong
        return None


def check_same_sweep(store: Store, identity: Mapping[str, Any]) -> None:
    """Checks that a store is of this sweep.

    Raises:
        ValueError: if not, with the difference.
    """
    check_format(store.path, identity, store.identity)
    found = differences_of_stores(identity, store.identity)
    if found:
        grows = "" if shortfalls(identity, store.identity) else GROWS
        raise ValueError(
            f"store must hold the same sweep, got {store.path}, where {found}; {grows}overwrite=True replaces what is "
            "there"
        )


def check_storable(template: "xr.Dataset") -> None:
    """Checks that a store can hold what a sweep gives.

    Raises:
        ValueError: if a name is none for a folder or is taken, if a dtype is none of Zarr's, or if there is no output.
    """
    if not template.data_vars:
        raise ValueError("outputs must be at least one in a sweep with a store, got none")
    for name in template.variables:
        plain = isinstance(name, str) and name not in ("", ".", "..", "zarr.json", COMPUTED)
        if not plain or {"/", "\\"} & set(str(name)):
            raise ValueError(
                f"outputs and axes must not be named {name} in a sweep with a store: names are of its folders, and "
                f"{COMPUTED} is taken"
            )
    for name, values in template.data_vars.items():
        if values.dtype.kind not in "biufc":
            raise ValueError(f"outputs must be of a NumPy dtype in a sweep with a store, got {values.dtype} for {name}")


def _create(
    path: Path, template: "xr.Dataset", identity: Mapping[str, Any], chunk: Sequence[int], num_static: int
) -> None:
    zarr = import_zarr()
    from zarr.codecs import Crc32cCodec, ZstdCodec

    first = next(iter(template.data_vars.values()))
    lead = first.dims[: num_static + len(chunk)]
    sizes = tuple(template.sizes[name] for name in lead)
    blocks = (1,) * num_static + tuple(chunk)
    codecs = [ZstdCodec(level=1), Crc32cCodec()]
    layout = {
        "static_sizes": sizes[:num_static],
        "sizes": sizes[num_static:],
        "chunk": list(chunk),
        "outputs": [str(name) for name in template.data_vars],
        "parts": [part_record(template, sizes)],
    }
    with warnings.catch_warnings():
        ignore_format_warnings()
        coords = template.drop_vars(list(template.data_vars))
        text = {name: values.astype(object) for name, values in coords.coords.items() if values.dtype.kind == "U"}
        coords.assign_coords(text).to_zarr(
            path,
            mode="w-",
            zarr_format=3,
            consolidated=False,
            write_empty_chunks=True,
            encoding={name: {"compressors": codecs} for name in coords.coords},
        )
        group = zarr.open_group(path, mode="r+")
        layout[LABELS] = {str(name): hash_labels(np.asarray(group[name][...])) for name in coords.coords}
        notes = {IDENTITY: json.dumps(identity), LAYOUT: json.dumps(layout)}
        variables = {str(name): (values.dims, values.shape, values.dtype) for name, values in template.items()}
        for name, (dims, shape, dtype) in {**variables, COMPUTED: (lead, sizes, np.dtype(bool))}.items():
            group.create_array(
                name,
                shape=shape,
                chunks=(*blocks, *(max(1, size) for size in shape[len(blocks) :])),
                dtype=dtype,
                fill_value=np.nan if dtype.kind == "f" else dtype.type(0),
                dimension_names=[str(dim) for dim in dims],
                compressors=codecs,
                attributes=notes if name == COMPUTED else None,
            )
        zarr.consolidate_metadata(path)
    root = json.loads((path / METADATA).read_text())
    seal(root)
    mark = root["consolidated_metadata"]["metadata"][COMPUTED]
    for file, content in ((path / METADATA, root), (path / COMPUTED / METADATA, mark)):
        file.write_text(json.dumps(content))

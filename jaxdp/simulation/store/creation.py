"""Creates a store, or opens the store of the same sweep and repairs its damaged metadata and labels."""

import contextlib
import json
import shutil
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jaxdp.simulation.store.files import Store, ignore_format_warnings, import_zarr
from jaxdp.simulation.store.identity import check_format, differences_of_stores
from jaxdp.simulation.store.locks import creation_lock, lock_folder
from jaxdp.simulation.store.mending import add_checksum, mend_labels
from jaxdp.simulation.store.metadata import part_record, read_json, restore_root, sync_metadata
from jaxdp.simulation.store.seal import COMPUTED, IDENTITY, LABELS, LAYOUT, METADATA, hash_labels, seal

if TYPE_CHECKING:
    import xarray as xr

GROWS = "grow=True keeps its results and adds the missing ones; "


def open_or_create(
    path: Path,
    template: "xr.Dataset",
    identity: Mapping[str, Any],
    chunk: Callable[[], Sequence[int]],
    *,
    num_static: int,
    overwrite: bool,
    alone: bool,
    can_grow: Callable[[Store], bool],
) -> Store:
    """Opens the store of a sweep, or creates it.

    The caller must have the lock of its share (`locks.share_lock`), and must not have the creation lock.

    Warns:
        RuntimeWarning: for each damaged part of the metadata and labels, which is written again.

    Args:
        path: path of the store.
        template: a dataset with the sweep's variables, coordinates and attributes; values of variables are not used.
        identity: result of `identity.identity`.
        chunk: returns the sizes of a chunk along (*axes, seed); called only if a store is created.
        num_static: number of static axes, which come first.
        overwrite: whether to replace an existing store.
        alone: whether no other process can write the store. Only then is a missing checksum added.
        can_grow: returns whether a store can be extended to cover this sweep; called only if the store belongs to
            another sweep.

    Raises:
        ValueError: if the path has something other than a store, or a store that cannot be repaired; without
            `overwrite`, if the store belongs to another sweep (the message states the difference) or has another
            format.
        OSError: if files cannot be written.
    """
    with creation_lock(path):
        unfinished, replaced = (lock_folder(path) / name for name in ("unfinished", "replaced"))
        if overwrite and path.exists():
            restore_root(path)
            Store(path)  # raises if something other than a store is at the path
        if overwrite or not path.exists():
            shutil.rmtree(unfinished, ignore_errors=True)
            _create(unfinished, template, identity, chunk(), num_static)
            if path.exists():
                shutil.rmtree(replaced, ignore_errors=True)
                path.rename(replaced)
            unfinished.rename(path)
            shutil.rmtree(replaced, ignore_errors=True)
        warning = restore_root(path)
        if warning:
            warnings.warn(warning, RuntimeWarning, stacklevel=3)
        store = Store(path)
        sync_metadata(path)
    check_same_sweep(store, identity, can_grow)
    with creation_lock(path):
        sentences = add_checksum(store, template) if alone and not store.has_checksum else mend_labels(store, template)
        for sentence in sentences:
            warnings.warn(sentence, RuntimeWarning, stacklevel=3)
        return Store(path)


def stored_tile_size(path: Path) -> int | None:
    """Returns the tile size of the store at a path, also if its `zarr.json` is damaged; None if it cannot be read."""
    with contextlib.suppress(KeyError, TypeError, ValueError):
        return int(Store(path).identity["tile_size"])
    with contextlib.suppress(KeyError, TypeError, ValueError):  # `restore_root` reads the same copy
        return int(json.loads(read_json(path / COMPUTED / METADATA)["attributes"][IDENTITY])["tile_size"])
    return None  # if there is a store, the sweep reports its fault later


def check_same_sweep(
    store: Store, identity: Mapping[str, Any], can_grow: Callable[[Store], bool] = lambda store: False
) -> None:
    """Raises a ValueError if a store has another format or belongs to another sweep.

    For another sweep, the message states the differences, and suggests grow=True if `can_grow` returns True.
    """
    check_format(store.path, identity, store.identity)
    difference = differences_of_stores(identity, store.identity)
    if difference:
        grow = GROWS if can_grow(store) else ""
        raise ValueError(
            f"store must hold the same sweep, got {store.path}, where {difference}; {grow}overwrite=True replaces its "
            "results"
        )


def check_storable(template: "xr.Dataset") -> None:
    """Checks that a store can hold the results of a sweep.

    Raises:
        ValueError: if there is no output, if a name is not a valid folder name or is reserved, or if the dtype of an
            output is not a bool, integer, float or complex dtype of NumPy.
    """
    if not template.data_vars:
        raise ValueError("a sweep with a store must have at least one output, got none")
    for name in template.variables:
        is_folder_name = isinstance(name, str) and name not in ("", ".", "..", "zarr.json", COMPUTED)
        if not is_folder_name or {"/", "\\"} & set(str(name)):
            raise ValueError(
                f"outputs and axes must not be named {name} in a sweep with a store: each name becomes a folder, and "
                f"{COMPUTED} is reserved"
            )
    for name, values in template.data_vars.items():
        if values.dtype.kind not in "biufc":
            raise ValueError(
                "outputs must be bool, integer, float or complex arrays of a NumPy dtype in a sweep with a store, got "
                f"{values.dtype} for {name}"
            )


def _create(
    path: Path, template: "xr.Dataset", identity: Mapping[str, Any], chunk: Sequence[int], num_static: int
) -> None:
    zarr = import_zarr()
    from zarr.codecs import Crc32cCodec, ZstdCodec

    first = next(iter(template.data_vars.values()))
    leading_dims = first.dims[: num_static + len(chunk)]
    sizes = tuple(template.sizes[name] for name in leading_dims)
    leading_chunk = (1,) * num_static + tuple(chunk)
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
        descriptions = {IDENTITY: json.dumps(identity), LAYOUT: json.dumps(layout)}
        variables = {str(name): (values.dims, values.shape, values.dtype) for name, values in template.items()}
        for name, (dims, shape, dtype) in {**variables, COMPUTED: (leading_dims, sizes, np.dtype(bool))}.items():
            group.create_array(
                name,
                shape=shape,
                chunks=(*leading_chunk, *(max(1, size) for size in shape[len(leading_chunk) :])),
                dtype=dtype,
                fill_value=np.nan if dtype.kind == "f" else dtype.type(0),
                dimension_names=[str(dim) for dim in dims],
                compressors=codecs,
                attributes=descriptions if name == COMPUTED else None,
            )
        zarr.consolidate_metadata(path)
    root = json.loads((path / METADATA).read_text())
    seal(root)  # also changes the attributes of COMPUTED, which have a file of their own
    computed = root["consolidated_metadata"]["metadata"][COMPUTED]
    for file, content in ((path / METADATA, root), (path / COMPUTED / METADATA, computed)):
        file.write_text(json.dumps(content))

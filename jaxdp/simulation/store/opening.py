"""Opens finished and unfinished stores for reading."""

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jaxdp.simulation.store.files import Store, open_dataset
from jaxdp.simulation.store.provenance import add_privacy_unit
from jaxdp.simulation.store.seal import COMPUTED
from jaxdp.validation import check_local_path

if TYPE_CHECKING:
    import xarray as xr


def open(store: str | Path) -> "xr.Dataset":
    """Opens a store for reading, with NaN for lanes that are not computed yet.

    Do not use `xarray.open_zarr`. In missing lanes it returns 0 for integers and False for booleans, so averages over
    lanes are wrong.

    Args:
        store: path of a store that `sweep(..., store=...)` wrote, is writing, or did not finish.

    Returns:
        The results with the labels that `sweep` gives. Values are read when they are used, so they include results that
        were written in the meantime. If lanes are missing, the variable `computed` is true for the lanes that exist,
        and integers and booleans become float64, so that missing lanes can be NaN. Integers beyond 2^53 are then
        rounded. In a finished store every variable has the same dtype as in the result of `sweep`.

    Raises:
        ValueError: if there is no store of a sweep, or the path is an address such as s3://bucket/runs; if a file of
            computed results is missing; or if the store's description or its labels are damaged. Damaged results raise
            an OSError with the file's name when they are read.

    Examples:
        >>> import tempfile, jax, jaxdp
        >>> def build():
        ...     learner = jaxdp.bandits.explore_then_commit(num_arms=2, explore_rounds=4)
        ...     return jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.1, 0.9]), horizon=8)
        >>> folder = tempfile.TemporaryDirectory()
        >>> half = {"store": f"{folder.name}/s.zarr", "process_index": 0, "num_processes": 2, "chunk_size": 1}
        >>> _ = jaxdp.sweep(build, axes={"epsilon": [1.0]}, num_seeds=4, key=jax.random.key(0), **half)
        >>> results = jaxdp.open(half["store"])
        >>> results.computed.values.tolist(), results.pseudo_regret.count().item()
        ([[True, True, False, False]], 2)
        >>> folder.cleanup()
    """
    path = check_local_path("store", store).resolve()
    opened = Store(path)
    opened.check_files()  # Zarr would read missing files of integers as zeros
    results = open_masked(opened)
    with contextlib.suppress(ValueError):  # captions do not show the unit if the provenance cannot be read
        add_privacy_unit(results)
    return results


def open_masked(store: Store) -> "xr.Dataset":
    """Opens a store's results, with NaN for missing lanes and, if lanes are missing, with the variable `computed`."""
    dataset = open_dataset(store.path)
    if store.lanes_computed() == np.prod(dataset[COMPUTED].shape):
        return dataset.drop_vars(COMPUTED)
    from jaxdp.simulation.store.masked import mask_missing  # here, as it imports xarray and pandas

    mask = dataset.variables[COMPUTED]
    return dataset.assign(
        {
            name: (values.dims, mask_missing(dataset.variables[name], mask), values.attrs)
            for name, values in dataset.data_vars.items()
            if name != COMPUTED
        }
    )

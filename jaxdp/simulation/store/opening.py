"""Reading a store, whether or not a sweep has finished it."""

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from jaxdp.simulation.store.files import Store, open_dataset
from jaxdp.simulation.store.seal import COMPUTED
from jaxdp.validation import check_local_path

if TYPE_CHECKING:
    import xarray as xr


def open(store: str | Path) -> "xr.Dataset":
    """Opens a store for reading, with NaN wherever nothing has been computed yet.

    `xarray.open_zarr` shows numbers there, zero for integers and False for truth values, so that means are wrong.

    Args:
        store: path of a store that `sweep(..., store=...)` wrote, is writing, or left unfinished.

    Returns:
        The results, labelled as `sweep` returns them; values are read when they are used. As long as lanes are missing,
        `computed` is among the variables and is true for the lanes that are there, and integers and truth values are
        float64 (0.0 and 1.0), which has NaN for the others (integers beyond 2^53 are rounded). Of a finished store
        every variable has its own dtype. What a sweep writes later shows in what is read later.

    Raises:
        ValueError: if there is no store of a sweep, if it has lost a file of what was computed, or if its description
            or its labels are damaged. Damaged results raise an OSError where they are read, which names the file.

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
    opened.check_files()  # Zarr would read zeros for integers there
    results = open_dataset(path)
    if opened.lanes_computed() == np.prod(results[COMPUTED].shape):
        return results.drop_vars(COMPUTED)
    from jaxdp.simulation.store.masked import masked  # it needs xarray, with which pandas comes

    mask = results.variables[COMPUTED]
    return results.assign(
        {
            name: (values.dims, masked(results.variables[name], mask), values.attrs)
            for name, values in results.data_vars.items()
            if name != COMPUTED
        }
    )

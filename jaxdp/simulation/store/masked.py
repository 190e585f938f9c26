"""Makes lazy arrays from the results of an unfinished store, with NaN for missing lanes."""

from typing import Any

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing


def mask_missing(values: xr.Variable, mask: xr.Variable) -> indexing.LazilyIndexedArray:
    """Returns a lazy array of `values` with NaN where `mask` is false. The mask has the first dimensions of `values`.

    Values are read when the array is indexed. Integers and booleans become float64.
    """
    return indexing.LazilyIndexedArray(_Masked(values, mask))


class _Masked(BackendArray):
    """A lazy variable with NaN where a mask is false. The mask has the first dimensions of the variable."""

    def __init__(self, values: xr.Variable, mask: xr.Variable) -> None:
        self._values, self._mask = values, mask
        self.shape = values.shape
        self.dtype = np.dtype(np.float64) if values.dtype.kind in "biu" else values.dtype

    def __getitem__(self, key: indexing.ExplicitIndexer) -> Any:
        return indexing.explicit_indexing_adapter(key, self.shape, indexing.IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        mask = self._mask[key[: self._mask.ndim]].load()  # read before the values, so that marked lanes are on disk
        return self._values[key].astype(self.dtype).where(mask).values

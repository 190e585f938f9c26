"""Stores the caller's data of all rounds as one array, with a small dtype, that all lanes share.

The data are private, so error messages do not show entries.
"""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import default_float
from jaxdp.memory import free_bytes
from jaxdp.numerics import rounding
from jaxdp.numerics.lookup import nearest_entry
from jaxdp.validation import check_finite, check_within

AT_A_TIME = 2**22  # number of entries that a check copies and reads at a time
SMALL = ("int8", "uint8", "int16", "uint16", "float16", "float32")  # dtypes that are not converted


def kept_matrix(name: str, values: ArrayLike, scale: float, *, columns: str, column: str) -> np.ndarray:
    """Checks a matrix with one row for each round, and returns it as a read-only array with a small dtype.

    Args:
        name: name of the values, for errors.
        values: [horizon, columns] numbers or bools in [0, scale]. A read-only array in C order is copied only if its
            dtype changes.
        scale: the largest allowed value, > 0.
        columns: name of the columns in error messages, such as "arms".
        column: name of the number of columns in error messages, such as "num_arms".

    Returns:
        The matrix. The dtypes float16 and float32 are unchanged. Bools, and integers if the scale is < 256, become
        uint8. All other values get JAX's default float type.

    Raises:
        ValueError: if values are not such a matrix with at least one round and two columns, or do not fit in the free
            memory of the device; or if the scale is too small or too large to divide by in JAX's default float type.
    """
    info = np.finfo(default_float())
    # Devices take numbers below `tiny` as 0. This may happen to entries below eps * scale, but not to 1 / scale.
    smallest, largest = float(info.tiny / info.eps), float(1 / info.tiny)
    if not smallest <= scale <= largest:
        raise ValueError(f"scale must be in [{smallest:.3g}, {largest:.3g}] for {info.dtype}, got {scale:g}")
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths: the check raises a better error
        array = check_within(name, values, 0.0, scale, is_private=True)
    if np.ma.is_masked(values):
        check_within(name, values, 0.0, scale, is_private=True)  # raises
    if array.ndim != 2 or array.shape[0] < 1 or array.shape[1] < 2:
        raise ValueError(f"{name} must be [horizon, {column}] with at least two {columns}, got shape {array.shape}")
    dtype = _kept_dtype(array.dtype, scale)
    numbers = array.view(np.uint8) if array.dtype == bool else array
    return _freeze(name, numbers, dtype, lambda rows: _check_rows(name, numbers, rows, scale))


def kept_numbers(
    name: str, values: ArrayLike, axes: tuple[str, ...], check: Callable[[np.ndarray], None] | None = None
) -> np.ndarray:
    """Checks an array with one entry along the first axis for each round, and returns it as a read-only array.

    Args:
        name: name of the values, for errors.
        values: finite numbers or bools. A read-only array in C order is copied only if its dtype changes.
        axes: names of the axes, for errors; each axis must have at least one entry.
        check: (rows) -> None; raises a ValueError if values are wrong. It is called with consecutive slices of the
            array until all rounds are checked.

    Returns:
        The array. Dtypes in `SMALL` are unchanged, bools become uint8, and all other values get JAX's default float
        type.

    Raises:
        ValueError: if the array has another number of axes or no entries, an entry is not a finite number or overflows
            in the new dtype, `check` raises, or the array does not fit in the free memory of the device.
    """
    try:
        array = np.asarray(values)
    except ValueError:  # rows of different lengths: the check raises a better error
        array = check_finite(name, values, is_private=True)
    if np.ma.is_masked(values):
        check_finite(name, values, is_private=True)  # raises
    if array.ndim != len(axes) or not array.size:
        raise ValueError(f"{name} must be [{', '.join(axes)}], each at least 1, got shape {array.shape}")

    array = array.view(np.uint8) if array.dtype == bool else array
    dtype = array.dtype if array.dtype.name in SMALL else default_float()

    def check_part(rows: slice) -> None:
        part = array[rows]
        try:
            check_finite(name, part, is_private=True)
        except ValueError:
            check_finite(name, array, is_private=True)  # counts all wrong entries
        with np.errstate(over="ignore"):
            if not np.isfinite(part.astype(dtype)).all():
                raise ValueError(f"{name} must be within the range of {dtype}, got numbers outside of it")
        if check is not None:
            check(part)

    return _freeze(name, array, dtype, check_part)


def shown_numbers(array: np.ndarray | jax.Array, round_: jax.Array) -> jax.Array:
    """Returns the numbers of a round in JAX's default float type, and NaN after the last round.

    Args:
        array: [horizon, ...], from `kept_numbers`.
        round_: [] integer >= 0.
    """
    numbers = nearest_entry(jnp.asarray(array), round_).astype(default_float())
    return jnp.where(round_ < len(array), numbers, jnp.nan)


def shown_row(matrix: np.ndarray | jax.Array, round_: jax.Array, scale: float) -> jax.Array:
    """Returns the row of a round, divided by the scale, in JAX's default float type, and NaN after the last round.

    Args:
        matrix: [horizon, columns], from `kept_matrix`.
        round_: [] integer >= 0.
        scale: the scale of the matrix. An entry that is equal to the scale becomes exactly 1.
    """
    row = nearest_entry(jnp.asarray(matrix), round_).astype(default_float())
    if scale != 1:
        # XLA may multiply by the inverse of the scale. An entry equal to the scale would then not become exactly 1.
        row = jnp.where(row >= scale, jnp.ones_like(row), rounding.round_product(row / scale))
    return jnp.where(round_ < len(matrix), row, jnp.nan)


def _freeze(name: str, array: np.ndarray, dtype: np.dtype, check: Callable[[slice], None]) -> np.ndarray:
    """Calls `check` on consecutive slices of rows, and returns the array as a read-only array with this dtype.

    The array is copied only if it is writable, or has another dtype or order.
    """
    _check_fits(name, array.shape, dtype)
    rows = max(1, AT_A_TIME // max(1, math.prod(array.shape[1:])))
    for first in range(0, len(array), rows):
        check(slice(first, first + rows))
    frozen = array.astype(dtype, order="C", copy=array.flags.writeable)
    frozen.flags.writeable = False
    return frozen


def _check_rows(name: str, array: np.ndarray, rows: slice, scale: float) -> None:
    part = array[rows]
    is_real = np.issubdtype(part.dtype, np.integer) or np.issubdtype(part.dtype, np.floating)
    with np.errstate(invalid="ignore", over="ignore"):  # the scale may be infinite in the dtype of `part`
        if is_real and (np.isfinite(part) & (part >= 0) & (part <= scale)).all():
            return
    check_within(name, array, 0.0, scale, is_private=True)  # counts all wrong entries


def _kept_dtype(dtype: np.dtype, scale: float) -> np.dtype:
    if dtype in (np.float16, np.float32):
        return dtype
    is_small = np.issubdtype(dtype, np.bool_) or (np.issubdtype(dtype, np.integer) and scale < 256)
    return np.dtype(np.uint8) if is_small else default_float()


def _check_fits(name: str, shape: tuple[int, ...], dtype: np.dtype) -> None:
    """Raises a ValueError with the size if an array is larger than the free memory of the device."""
    device: Any = jax.local_devices()[0]
    needed, free = int(np.prod(shape, dtype=object)) * dtype.itemsize, free_bytes(device)
    if free is not None and needed > free:
        raise ValueError(
            f"{name} must fit in the free memory of {device}, {_gib(free)}, got "
            f"{' by '.join(map(str, shape))} {dtype} {name}, which take {_gib(needed)}; "
            "float16 or uint8 would take less"
        )


def _gib(size: int) -> str:
    return f"{size / 2**30:.3g} GiB"

"""Turns outputs into columns of numbers, on which scores are fitted."""

from typing import NamedTuple

import numpy as np

from jaxdp.audit.checks import differ
from jaxdp.audit.sampling import LOW_BITS, Outputs


class Extra(NamedTuple):
    """Indices of the numbers of an output that need extra feature columns.

    Attributes:
        low: [a] int32, indices of integers so large that a float may round them; each gets a column of its lowest 16
            bits.
        special: [b] int32, indices of numbers that may be NaN or infinite; each gets three indicators.
        lattice: [c] int32, indices of numbers with fractions; each gets a column of the largest k such that 2^k divides
            it.
    """

    low: np.ndarray
    special: np.ndarray
    lattice: np.ndarray


class Columns(NamedTuple):
    """The columns of outputs on which classifiers are fitted.

    Attributes:
        extra: the numbers that need extra columns.
        indices: [c] int32, indices of the fitted columns in the result of `all_columns`.
    """

    extra: Extra
    indices: np.ndarray


def find_extra(first: Outputs, second: Outputs, *, low_bits: bool) -> Extra:
    """Finds the numbers of two samples that need extra columns; `lattice` is empty if `low_bits` is False."""

    def where(flags: list[np.ndarray]) -> np.ndarray:
        return np.flatnonzero(np.any(np.stack(flags), axis=0)).astype(np.int32)

    return Extra(
        low=where([np.any(outputs.low != 0, axis=0) for outputs in (first, second)]),
        special=where([~np.all(np.isfinite(outputs.numbers), axis=0) for outputs in (first, second)]),
        lattice=where([_has_fractions(outputs.numbers) & low_bits for outputs in (first, second)]),
    )


def _has_fractions(numbers: np.ndarray) -> np.ndarray:
    return np.any(np.isfinite(numbers) & (numbers != np.trunc(numbers)), axis=0)


def names_of_columns(size: int, extra: Extra) -> list[str]:
    """Returns the name of each column, for outputs of `size` numbers."""
    names = ["output"] if size == 1 else [f"output[{i}]" for i in range(size)]
    low = [f"{names[i]} mod {LOW_BITS + 1}" for i in extra.low]
    flags = [f"{kind}({names[i]})" for kind in ("isnan", "isposinf", "isneginf") for i in extra.special]
    return names + low + flags + [f"power of two in {names[i]}" for i in extra.lattice]


def all_columns(extra: Extra, outputs: Outputs) -> np.ndarray:
    """Returns the numbers of outputs and their extra columns, in the order of `names_of_columns`.

    The result is [n, columns] float.
    """
    numbers = outputs.numbers
    if not (extra.low.size or extra.special.size or extra.lattice.size):
        return numbers
    special = numbers[:, extra.special]
    flags = [np.isnan(special), np.isposinf(special), np.isneginf(special)]
    low = outputs.low[:, extra.low] if extra.low.size else numbers[:, :0]
    powers = _power_of_two(numbers[:, extra.lattice])
    return np.concatenate([numbers, low, *(x.astype(numbers.dtype) for x in flags), powers], axis=1)


def kept_columns(columns: Columns, outputs: Outputs) -> np.ndarray:
    """Returns the columns of outputs on which classifiers are fitted, as [n, c] float."""
    return np.take(all_columns(columns.extra, outputs), columns.indices, axis=1)


def varying_columns(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Returns the indices ([c] int32) of columns that are not constant; if there are none, the first index.

    A column is constant if it has the same value in all rows of both samples [n, m]. A classifier learns nothing from
    constant columns.
    """
    varies = differ(first, first[:1]).any(axis=0) | differ(second, first[:1]).any(axis=0)
    return (np.flatnonzero(varies) if varies.any() else np.zeros(1)).astype(np.int32)


def _power_of_two(numbers: np.ndarray) -> np.ndarray:
    """Returns the largest k such that a float is a multiple of 2^k; a large k for 0, NaN and infinity."""
    info = np.finfo(numbers.dtype)
    bits = np.ascontiguousarray(numbers).view({4: np.int32, 8: np.int64}[numbers.dtype.itemsize])
    mantissa = bits & np.asarray(2**info.nmant - 1, bits.dtype)
    exponent = (bits >> info.nmant) & np.asarray(2 ** (info.bits - 1 - info.nmant) - 1, bits.dtype)
    whole = np.where(exponent > 0, mantissa | np.asarray(2**info.nmant, bits.dtype), mantissa)
    zeros = np.bitwise_count((whole & -whole) - 1).astype(bits.dtype)
    power = np.maximum(exponent, 1) + zeros - (info.maxexp - 1 + info.nmant)
    return np.where((numbers == 0) | ~np.isfinite(numbers), info.maxexp, power).astype(numbers.dtype)

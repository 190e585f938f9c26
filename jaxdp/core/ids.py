"""Checks public ids of persons, since ids that do not compare as equal would make several persons of one."""

import operator
from typing import Any

import numpy as np

from jaxdp.validation import refuse_masked

SORTABLE = ({"text"}, {"integer"}, {"bytes"})


def check_ids(name: str, ids: Any) -> np.ndarray:
    """Returns public ids as a vector in which NumPy finds equal ids, so that no person counts as several.

    Raises:
        ValueError: if ids are not a vector of at least one id, have masked entries, or are not all text, all bytes or
            all integers. Missing ids (NaN, None) are none of these. The error shows types, but no ids.
    """
    refuse_masked(name, ids)
    try:
        array = np.asarray(ids)
    except ValueError as error:
        raise ValueError(f"{name} must be a vector of ids, got rows of different lengths") from error
    if array.ndim != 1 or not array.size:
        shape = "None" if ids is None else f"shape {array.shape}"
        raise ValueError(f"{name} must be a vector of at least one id, got {shape}")
    is_list = not hasattr(ids, "__array__")  # NumPy would make text of a list of text and numbers
    if is_list or array.dtype.kind in "OT":
        values = list(ids) if is_list else array.tolist()
        kinds = {id_kind(value) for value in values}
        if kinds not in SORTABLE:
            raise ValueError(f"{name} must be ids that are all text or all integers, got {', '.join(sorted(kinds))}")
        return np.asarray(values, object) if array.dtype.kind == "f" else array  # floats would merge large integers
    if array.dtype.kind not in "iuUS":
        raise ValueError(f"{name} must be ids that are all text or all integers, got {array.dtype}")
    return array


def id_kind(value: Any) -> str:
    """Returns "text", "integer", or the name of another type, such as "float" for a missing id."""
    if isinstance(value, str | bytes):
        return "text" if isinstance(value, str) else "bytes"
    if isinstance(value, bool):
        return "bool"
    try:
        operator.index(value)
    except TypeError:
        return type(value).__name__
    return "integer"

"""Pairs of responses as public features and private labels: the features must not show which response won."""

from typing import NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from jaxdp.validation import check_choice, check_key

ORIENTATIONS = ("bytes", "coin")


class Pairs(NamedTuple):
    """Comparisons of two responses.

    Attributes:
        features: [num_samples, dim] float, the first response's features minus the second's; public.
        labels: [num_samples] int32 in {0, 1}; 1: the first was chosen. Private.
        rows: [num_samples] integers, the row of the input from which each pair comes, to bring other columns, such as
            ids of persons, into the same order.
    """

    features: np.ndarray
    labels: np.ndarray
    rows: np.ndarray


def pairs_from_chosen_rejected(
    chosen: ArrayLike, rejected: ArrayLike, *, orient: str = "bytes", key: jax.Array | None = None
) -> Pairs:
    """Splits a table of chosen and rejected responses into public features and private labels.

    `chosen - rejected` must never be used as features: its sign is the label, and with labels of 1 nothing is private
    at any epsilon. Here neither the sign of the features nor the order of the rows depends on who won.

    Args:
        chosen: [num_samples, dim] float, the features of the responses that were preferred.
        rejected: [num_samples, dim] float, the features of the others.
        orient: which response is the first. "bytes": the one with the larger bytes of features, a rule of the unordered
            pair alone. "coin": a fair coin of the key decides.
        key: for "coin" alone; as secret as the labels, because whoever knows it reads the labels off the features.

    Returns:
        Features, labels and rows, sorted by the bytes of the unordered pairs. Two responses with equal features have
        features of 0, and the label 1 with "bytes".

    Raises:
        ValueError: if the two are not tables of the same shape and type with finite entries, or key is given without
            "coin" or missing with it.

    Examples:
        >>> chosen, rejected = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 1.0], [3.0, 0.0]])
        >>> pairs = pairs_from_chosen_rejected(chosen, rejected)
        >>> swapped = pairs_from_chosen_rejected(rejected, chosen)
        >>> print((pairs.features == swapped.features).all(), pairs.labels + swapped.labels)
        True [1 1]
    """
    check_choice("orient", orient, ORIENTATIONS)
    if (key is None) == (orient == "coin"):
        raise ValueError(
            f'key must be given for orient="coin" and left out otherwise, got key={key}, orient={orient!r}'
        )
    chosen, rejected = np.asarray(chosen), np.asarray(rejected)
    for name, table in (("chosen", chosen), ("rejected", rejected)):
        if table.ndim != 2 or 0 in table.shape or not np.issubdtype(table.dtype, np.floating):
            raise ValueError(f"{name} must be a table of floats, got {table.dtype} of shape {table.shape}")
    if (chosen.shape, chosen.dtype) != (rejected.shape, rejected.dtype):
        raise ValueError(
            f"rejected must have the type and shape of chosen, {chosen.dtype} {chosen.shape}, got {rejected.dtype} "
            f"{rejected.shape}"
        )
    if bad := int((~(np.isfinite(chosen) & np.isfinite(rejected)).all(axis=1)).sum()):  # which of both is private
        raise ValueError(f"chosen and rejected must be finite, got NaN or infinity in {bad} of {len(chosen)} rows")
    # adding 0 turns -0 into 0: equal numbers have equal bytes
    chosen, rejected = np.ascontiguousarray(chosen + 0), np.ascontiguousarray(rejected + 0)
    chosen_wins = _has_larger_bytes(chosen, rejected)
    larger, smaller = (np.where(chosen_wins[:, None], *pair) for pair in ((chosen, rejected), (rejected, chosen)))
    rows = np.argsort(_as_bytes(np.hstack([larger, smaller])), kind="stable")
    first, second, labels = larger[rows], smaller[rows], chosen_wins[rows].astype(np.int32)
    if key is not None:
        heads = np.asarray(jax.random.bits(check_key(key), (len(rows),)) & 1, np.int32)
        first, second = (np.where(heads[:, None] == 1, *pair) for pair in ((second, first), (first, second)))
        labels = np.where(heads == 1, 1 - labels, labels)
    return Pairs(first - second, labels, rows)


def _has_larger_bytes(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns whether each row of `left` has the larger bytes, or the same: [num_rows] bool."""
    left, right = (table.view(np.uint8).reshape(len(table), -1) for table in (left, right))
    differs = (left != right).argmax(axis=1)[:, None]
    return (np.take_along_axis(left, differs, 1) >= np.take_along_axis(right, differs, 1))[:, 0]


def _as_bytes(table: np.ndarray) -> np.ndarray:
    """Returns each row as one value: [num_rows], sorted byte by byte."""
    return np.ascontiguousarray(table).view(np.dtype((np.void, table.shape[1] * table.itemsize)))[:, 0]

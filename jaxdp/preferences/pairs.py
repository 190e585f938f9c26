"""Pairs of responses as public features and private labels: the features must not show which response won."""

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Guarantee
from jaxdp.validation import check_choice, check_key

ORIENTATIONS = ("bytes", "coin")
_CHUNK_BYTES = 2**24


class Pairs(NamedTuple):
    """Comparisons of two responses.

    Attributes:
        features: [num_samples, dim] float, the first response's features minus the second's; public.
        labels: [num_samples] int32 in {0, 1}; 1: the first was chosen. With ties float32 in {0, 1/2, 1}; 1/2: a tie, or
            no label. Private.
        rows: [num_samples] integers, the row of the input from which each pair comes, to bring other columns, such as
            ids of persons, into the same order.
        persons: [num_samples] ids of who gave the labels, public; None if they were not read.
        ties_public: whether rows with a tie or without a label were dropped, which shows which rows they are.
    """

    features: np.ndarray
    labels: np.ndarray
    rows: np.ndarray
    persons: np.ndarray | None = None
    ties_public: bool = False

    def restate(self, claim: Guarantee) -> Guarantee:
        """Returns the claim of an algorithm that is run on these pairs: it says so if ties are public."""
        if not self.ties_public:
            return claim
        return dataclasses.replace(
            claim,
            privacy_unit=f"{claim.privacy_unit} (which rows tie is public)",
            argument=f"{claim.argument}; rows with a tie or without a label were dropped, and are not protected",
        )


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
        Features, labels and rows, sorted by a digest of the unordered pairs. Two responses with equal features have
        features of 0, and the label 1 with "bytes". Features of float16 are subtracted in float32.

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
    return orient_pairs(chosen, rejected, key)[0]


def orient_pairs(left: np.ndarray, right: np.ndarray, key: jax.Array | None) -> tuple[Pairs, np.ndarray]:
    """Builds sorted pairs from checked tables, in chunks of rows; the label is 1 where `left` is the first.

    Returns:
        The pairs; and digests of the unordered pairs, [num_samples, 2] uint64, in increasing order.
    """
    left_is_larger, digests, bad = np.empty(len(left), bool), np.empty((len(left), 2), np.uint64), 0
    for part in _chunks(left):
        one, other = _plain(left[part]), _plain(right[part])
        bad += int((~(np.isfinite(one) & np.isfinite(other)).all(axis=1)).sum())  # which of both is private
        left_is_larger[part] = _has_larger_bytes(one, other)
        digests[part] = _digests(*_swap_unless(left_is_larger[part], one, other))
    if bad:
        raise ValueError(f"features must be finite, got NaN or infinity in {bad} of {len(left)} rows")
    rows = np.lexsort(digests.T[::-1])
    left_is_first = left_is_larger[rows]
    if key is not None:
        heads = np.asarray(jax.random.bits(check_key(key), (len(rows),)) & 1, bool)
        left_is_first = left_is_first ^ heads
    wide = np.result_type(left.dtype.newbyteorder("="), np.float32)
    features = np.empty(left.shape, wide)
    for part in _chunks(left):
        one, other = (_plain(table[rows[part]]).astype(wide) for table in (left, right))
        first, second = _swap_unless(left_is_first[part], one, other)
        features[part] = first - second  # a product with the sign would show the label in the sign of zeros
    return Pairs(features, left_is_first.astype(np.int32), rows), digests[rows]


def _chunks(table: np.ndarray) -> Iterator[slice]:
    """Yields slices of rows that take about 16 MB."""
    size = max(1, _CHUNK_BYTES // (table.shape[1] * table.itemsize))
    return (slice(start, start + size) for start in range(0, len(table), size))


def _plain(rows: np.ndarray) -> np.ndarray:
    """Returns rows in memory, in the machine's order of bytes; equal numbers have equal bytes, as -0 becomes 0."""
    return np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder("=")) + 0)


def _swap_unless(keep: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.where(keep[:, None], left, right), np.where(keep[:, None], right, left)


def _has_larger_bytes(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns whether each row of `left` has the larger bytes, or the same: [num_rows] bool."""
    left, right = (table.view(np.uint8).reshape(len(table), -1) for table in (left, right))
    differs = (left != right).argmax(axis=1)[:, None]
    return (np.take_along_axis(left, differs, 1) >= np.take_along_axis(right, differs, 1))[:, 0]


def _digests(larger: np.ndarray, smaller: np.ndarray) -> np.ndarray:
    """Returns a digest of each row's two responses, [num_rows, 2] uint64."""
    digests = [
        hashlib.blake2b(one.tobytes() + other.tobytes(), digest_size=16).digest()
        for one, other in zip(larger, smaller, strict=True)
    ]
    return np.frombuffer(b"".join(digests), ">u8").reshape(-1, 2).astype(np.uint64)

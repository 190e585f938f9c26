"""Splits pairs of responses into public features and private labels. The features do not show which response won."""

import dataclasses
import hashlib
from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Guarantee
from jaxdp.validation import check_choice, check_key, refuse_masked

ORIENTATIONS = ("bytes", "coin")
FLOATS = ("float16", "float32", "float64")  # longer floats have bytes of padding, which differ for equal numbers
_CHUNK_BYTES = 2**24


class Pairs(NamedTuple):
    """Comparisons of two responses.

    Attributes:
        features: [num_samples, dim] float, the first response's features minus the second's; public.
        labels: [num_samples] int32 in {0, 1}, private; 1 if the first response was chosen. From `read_pairs` with
            ties="half" the labels are float32 in {0, 1/2, 1}, in which 1/2 is a tie or a missing label.
        rows: [num_samples] integers, the input row of each pair. Use them to bring other columns, such as ids of
            persons, into the same order.
        persons: [num_samples] public ids of the persons who gave the labels; None if the ids were not read.
        ties_public: whether rows with a tie or without a label were removed. Removing them makes public which rows they
            are.
    """

    features: np.ndarray
    labels: np.ndarray
    rows: np.ndarray
    persons: np.ndarray | None = None
    ties_public: bool = False

    def restate(self, claim: Guarantee) -> Guarantee:
        """Returns an algorithm's claim for these pairs; if `ties_public` is true, the returned claim says so."""
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

    Never use `chosen - rejected` as features, because its sign is the label, so nothing is private at any epsilon. In
    the result, neither the sign of the features nor the order of the rows depends on which response won.

    Args:
        chosen: [num_samples, dim] float16, float32 or float64, the features of the preferred responses.
        rejected: [num_samples, dim], the features of the other responses.
        orient: the rule that chooses the first response of a pair. "bytes" chooses the response with the larger bytes
            of features, which depends only on the unordered pair. "coin" tosses a fair coin with the key.
        key: PRNG key for "coin", otherwise None. Even together with the key, the features do not show which response
            won.

    Returns:
        Features, labels and rows, sorted by a digest of the unordered pairs. If two responses have equal features, the
        difference is 0, and with "bytes" the label is 1. Features in float16 are subtracted in float32.

    Raises:
        ValueError: if chosen and rejected are not tables with the same shape, without empty dimensions, one of these
            dtypes and finite entries; if orient has another value; or if key is given without "coin" or missing with
            "coin".

    Examples:
        >>> chosen, rejected = np.array([[1.0, 0.0], [0.0, 2.0]]), np.array([[0.0, 1.0], [3.0, 0.0]])
        >>> pairs = pairs_from_chosen_rejected(chosen, rejected)
        >>> swapped = pairs_from_chosen_rejected(rejected, chosen)
        >>> print((pairs.features == swapped.features).all(), pairs.labels + swapped.labels)
        True [1 1]
    """
    check_choice("orient", orient, ORIENTATIONS)
    if (key is None) == (orient == "coin"):
        raise ValueError(f'key must be given for orient="coin" and None otherwise, got key={key}, orient={orient!r}')
    refuse_masked("chosen", chosen)
    refuse_masked("rejected", rejected)
    chosen, rejected = np.asarray(chosen), np.asarray(rejected)
    for name, table in (("chosen", chosen), ("rejected", rejected)):
        if table.ndim != 2 or 0 in table.shape or table.dtype.name not in FLOATS:
            raise ValueError(f"{name} must be a table of {', '.join(FLOATS)}, got {table.dtype} of shape {table.shape}")
    if (chosen.shape, chosen.dtype) != (rejected.shape, rejected.dtype):
        raise ValueError(
            f"rejected must have the type and shape of chosen, {chosen.dtype} {chosen.shape}, got {rejected.dtype} "
            f"{rejected.shape}"
        )
    return orient_pairs(chosen, rejected, key)[0]


def orient_pairs(left: np.ndarray, right: np.ndarray, key: jax.Array | None) -> tuple[Pairs, np.ndarray]:
    """Builds pairs, sorted by digest, from the features of two responses, [num_samples, dim] each.

    Coins of the key choose the first response of each pair. If the key is None, the first response has the larger
    bytes. The label is 1 if `left` is the first response.

    Returns:
        The pairs, and increasing digests of the unordered pairs, [num_samples, 2] uint64.
    """
    left_is_larger, digests, bad = np.empty(len(left), bool), np.empty((len(left), 2), np.uint64), 0
    for part in _chunks(left):
        one, other = _canonical_rows(left[part]), _canonical_rows(right[part])
        bad += int(
            (~(np.isfinite(one) & np.isfinite(other)).all(axis=1)).sum()
        )  # the error does not say whether `left` or `right` has them, because this is private
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
        one, other = (_canonical_rows(table[rows[part]]).astype(wide) for table in (left, right))
        first, second = _swap_unless(left_is_first[part], one, other)
        features[part] = first - second  # multiplying by a sign would show the label in the sign of zeros
    return Pairs(features, left_is_first.astype(np.int32), rows), digests[rows]


def _chunks(table: np.ndarray) -> Iterator[slice]:
    """Yields slices that split the table's rows into chunks of one row or at most 16 MiB."""
    size = max(1, _CHUNK_BYTES // (table.shape[1] * table.itemsize))
    return (slice(start, start + size) for start in range(0, len(table), size))


def _canonical_rows(rows: np.ndarray) -> np.ndarray:
    """Returns rows as a contiguous array in native byte order, with 0 for -0, so equal numbers have equal bytes."""
    return np.ascontiguousarray(rows.astype(rows.dtype.newbyteorder("=")) + 0)


def _swap_unless(keep: np.ndarray, left: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.where(keep[:, None], left, right), np.where(keep[:, None], right, left)


def _has_larger_bytes(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Returns whether the bytes of each row of `left` are at least the bytes of `right`'s row, as [num_rows] bool.

    The bytes are compared lexicographically.
    """
    left, right = (table.view(np.uint8).reshape(len(table), -1) for table in (left, right))
    differs = (left != right).argmax(axis=1)[:, None]
    return (np.take_along_axis(left, differs, 1) >= np.take_along_axis(right, differs, 1))[:, 0]


def _digests(larger: np.ndarray, smaller: np.ndarray) -> np.ndarray:
    """Returns a digest of the two responses of each row. The result is [num_rows, 2] uint64."""
    digests = [
        hashlib.blake2b(one.tobytes() + other.tobytes(), digest_size=16).digest()
        for one, other in zip(larger, smaller, strict=True)
    ]
    return np.frombuffer(b"".join(digests), ">u8").reshape(-1, 2).astype(np.uint64)

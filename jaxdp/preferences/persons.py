"""Counts each person's labels, divides a person's budget among them, and limits the number of labels per person."""

import math
from fractions import Fraction

import jax
import numpy as np
from numpy.typing import ArrayLike

from jaxdp.core import default_float, leaf_rounded_down
from jaxdp.core.ids import check_ids
from jaxdp.validation import check_count, check_key


def limit_per_person(ids: ArrayLike, k: int, key: jax.Array) -> np.ndarray:
    """Draws at most k rows of each person at random, and returns the indices of the drawn rows.

    The function reads only ids and the key, so its result is public. The key need not be secret, because the draw only
    limits each person to k labels, and no privacy amplification by sampling is claimed.

    Args:
        ids: [num_samples] public ids of persons, all text or all integers.
        k: maximum number of labels of a person, >= 1.
        key: PRNG key of the draw.

    Returns:
        [num_left] integers, the indices of the drawn rows in increasing order.

    Raises:
        ValueError: if ids are not a vector of at least one id, are not all text or all integers, or k is not an integer
            >= 1.

    Examples:
        >>> rows = limit_per_person(["a", "b", "a", "a"], 2, jax.random.key(0))
        >>> len(rows), 1 in rows
        (3, True)
    """
    check_count("k", k)
    _, index, counts = count_labels(ids, "ids")
    order = np.asarray(jax.random.permutation(check_key(key), len(index)))
    by_person = order[np.argsort(index[order], kind="stable")]
    starts = np.cumsum(counts) - counts
    ranks = np.arange(len(index)) - np.repeat(starts, counts)
    return np.sort(by_person[ranks < k])


def count_labels(ids: ArrayLike | None, name: str = "persons") -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns the distinct ids, each row's index into them ([num_samples] int32), and the number of rows of each id."""
    distinct, index, counts = np.unique(check_ids(name, ids), return_inverse=True, return_counts=True)
    return distinct, index.astype(np.int32), counts


def budget_shares(epsilon: float, counts: np.ndarray) -> np.ndarray:
    """Returns epsilon / count for each count, rounded down to JAX's default float type.

    Raises:
        ValueError: if a share is too small for this type.
    """
    if math.isinf(epsilon):
        return np.full(counts.shape, math.inf, default_float())
    distinct, index = np.unique(counts, return_inverse=True)
    shares = [leaf_rounded_down(f"epsilon / {count}", Fraction(epsilon) / int(count)) for count in distinct]
    return np.asarray(shares, default_float())[index]

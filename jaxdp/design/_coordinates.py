"""Coordinates of the span of a set, and a design to start from: d of its points that span it."""

import numpy as np

SLACK = 16  # times dim and the rounding unit: what is smaller than that, next to the largest, lies in the span


def tolerance(dim: int, dtype: np.typing.DTypeLike) -> float:
    """How small a residual is, relative to the first, that is taken for rounding."""
    return float(SLACK * dim * np.finfo(dtype).eps)


def scaled_columns(points: np.ndarray) -> np.ndarray:
    """Each column in units of its largest entry, so that no unit of a feature decides what the rank is."""
    largest = np.abs(points).max(axis=0, initial=0.0)
    return points / np.where(largest > 0, largest, 1)


def of_points(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonalizes, the longest residual first.

    Args:
        points: [num_points, dim] float64.

    Returns:
        (coordinates [num_points, rank], in which all lie in [-1, 1] and the chosen points are triangular with a
        diagonal of 1; chosen points [rank] int).
    """
    rest, chosen, columns = scaled_columns(points), [], []
    limit = 0.0
    for step in range(min(points.shape)):
        lengths = np.einsum("ij,ij->i", rest, rest)
        longest = int(lengths.argmax())
        length = np.sqrt(lengths[longest])
        limit = max(limit, tolerance(points.shape[1], float) * length) if step == 0 else limit
        if not length > limit:
            break
        rest, column = _without(rest, rest[longest])
        chosen.append(longest)
        columns.append(column)
    return np.array(columns).reshape(len(columns), len(points)).T, np.array(chosen, int)


def of_differences(arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """As `of_points`, of the set of all differences of two arms, by the start of Kumar and Yildirim.

    A direction is that of the longest residual; the pair is the arms that lie farthest apart along it. The next direction is
    orthogonal to all pairs chosen so far, so that the pairs are linearly independent.

    Args:
        arms: [num_arms, dim] float64.

    Returns:
        (coordinates [num_arms, rank] of the arms, all differences of which lie in [-2, 2]; pairs [rank, 2] int).
    """
    rest, pairs, columns = scaled_columns(arms - arms[:1]), [], []  # a difference is rounded once, at its own size
    limit = 0.0
    for step in range(min(arms.shape)):
        lengths = np.einsum("ij,ij->i", rest, rest)
        longest = int(lengths.argmax())
        length = np.sqrt(lengths[longest])
        limit = tolerance(arms.shape[1], float) * length if step == 0 else limit
        if not length > limit:
            break
        along = rest @ rest[longest]
        pair = (int(along.argmax()), int(along.argmin()))
        rest, column = _without(rest, rest[pair[0]] - rest[pair[1]])
        pairs.append(pair)
        columns.append(column)
    return np.array(columns).reshape(len(columns), len(arms)).T, np.array(pairs, int).reshape(-1, 2)


def _without(rest: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(what is orthogonal to a direction, the multiples of it that were taken off)."""
    multiples = rest @ direction / (direction @ direction)
    return rest - multiples[:, None] * direction, multiples

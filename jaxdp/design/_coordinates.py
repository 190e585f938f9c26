"""Coordinates of the span of a set, and an initial design: d of its points that span it."""

import numpy as np

SLACK = 16  # times dim and the rounding unit: a smaller part, relative to the largest, lies in the span


def tolerance(dim: int, dtype: np.typing.DTypeLike) -> float:
    """Returns how small a residual, relative to the first, counts as rounding."""
    return float(SLACK * dim * np.finfo(dtype).eps)


def scaled_columns(points: np.ndarray) -> np.ndarray:
    """Returns each column in units of its largest entry, so that a feature's unit does not affect the rank."""
    largest = np.abs(points).max(axis=0, initial=0.0)
    return points / np.where(largest > 0, largest, 1)


def of_points(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonalizes points, the longest residual first.

    Args:
        points: [num_points, dim] float64.

    Returns:
        (coordinates [num_points, rank], all in [-1, 1], in which the chosen points are triangular with a diagonal of 1;
        chosen points [rank] int).
    """
    residuals, chosen_points, columns = scaled_columns(points), [], []
    limit = 0.0
    for step in range(min(points.shape)):
        lengths = np.einsum("ij,ij->i", residuals, residuals)
        longest = int(lengths.argmax())
        length = np.sqrt(lengths[longest])
        limit = tolerance(points.shape[1], float) * length if step == 0 else limit
        if not length > limit:
            break
        residuals, column = _without(residuals, residuals[longest])
        chosen_points.append(longest)
        columns.append(column)
    return np.array(columns).reshape(len(columns), len(points)).T, np.array(chosen_points, int)


def of_differences(arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonalizes the set of all differences of two arms, as `of_points`, with the start of Kumar and Yildirim.

    A direction is that of the longest residual; the pair consists of the arms that lie farthest apart along it. The
    next direction is orthogonal to all pairs chosen so far, so that the pairs are linearly independent.

    Args:
        arms: [num_arms, dim] float64.

    Returns:
        (coordinates [num_arms, rank] of the arms, whose differences all lie in [-2, 2]; pairs [rank, 2] int).
    """
    residuals, pairs, columns = scaled_columns(arms - arms[:1]), [], []  # a difference is rounded once, at its own size
    limit = 0.0
    for step in range(min(arms.shape)):
        lengths = np.einsum("ij,ij->i", residuals, residuals)
        longest = int(lengths.argmax())
        length = np.sqrt(lengths[longest])
        limit = tolerance(arms.shape[1], float) * length if step == 0 else limit
        if not length > limit:
            break
        along = residuals @ residuals[longest]
        pair = (int(along.argmax()), int(along.argmin()))
        residuals, column = _without(residuals, residuals[pair[0]] - residuals[pair[1]])
        pairs.append(pair)
        columns.append(column)
    return np.array(columns).reshape(len(columns), len(arms)).T, np.array(pairs, int).reshape(-1, 2)


def _without(residuals: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns (the parts orthogonal to a direction, the multiples of it that were subtracted)."""
    multiples = residuals @ direction / (direction @ direction)
    return residuals - multiples[:, None] * direction, multiples

"""Computes coordinates for the span of a set, and an initial design of d points that span it."""

import numpy as np

SLACK = 16  # residuals below SLACK * dim rounding errors of the longest residual count as 0


def tolerance(dim: int, dtype: np.typing.DTypeLike) -> float:
    """Returns the largest residual that counts as a rounding error, as a fraction of the first residual."""
    return float(SLACK * dim * np.finfo(dtype).eps)


def scaled_columns(points: np.ndarray) -> np.ndarray:
    """Divides each column by its largest absolute entry, so that units of features do not affect the rank."""
    largest = np.abs(points).max(axis=0, initial=0.0)
    return points / np.where(largest > 0, largest, 1)


def orthogonalize_points(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonalizes points [num_points, dim], starting with the longest; each step takes the longest residual.

    Returns:
        Coordinates [num_points, rank] in [-1, 1], in which the chosen points form a triangular matrix with a diagonal
        of 1; and indices of the chosen points, [rank] int.
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
        residuals, column = _remove_direction(residuals, residuals[longest])
        chosen_points.append(longest)
        columns.append(column)
    return np.array(columns).reshape(len(columns), len(points)).T, np.array(chosen_points, int)


def orthogonalize_differences(arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonalizes all differences of two arms [num_arms, dim], with the start of Kumar and Yildirim.

    Each step takes the longest residual as its direction, and chooses the two arms that are farthest apart along it.
    The next direction is orthogonal to all chosen differences, so that these are linearly independent.

    Returns:
        Coordinates [num_arms, rank] of the arms, with differences in [-2, 2]; and the chosen pairs, [rank, 2] int.
    """
    residuals, pairs, columns = scaled_columns(arms - arms[:1]), [], []  # each difference is rounded only once
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
        residuals, column = _remove_direction(residuals, residuals[pair[0]] - residuals[pair[1]])
        pairs.append(pair)
        columns.append(column)
    return np.array(columns).reshape(len(columns), len(arms)).T, np.array(pairs, int).reshape(-1, 2)


def _remove_direction(residuals: np.ndarray, direction: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns the parts of residuals orthogonal to a direction, and the multiples of the direction subtracted."""
    multiples = residuals @ direction / (direction @ direction)
    return residuals - multiples[:, None] * direction, multiples

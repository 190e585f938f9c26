"""Computes coordinates of points in their span of dimension d, and an initial design of d points with this span."""

from collections.abc import Callable
from typing import Any

import numpy as np

SLACK = 16  # residuals with a norm of at most SLACK * dim * eps times the largest norm of a point count as 0


def tolerance(dim: int, dtype: np.typing.DTypeLike) -> float:
    """Returns the maximum norm of a residual that counts as a rounding error, relative to the largest point norm."""
    return float(SLACK * dim * np.finfo(dtype).eps)


def scaled_columns(points: np.ndarray) -> np.ndarray:
    """Divides each column by its largest magnitude, so that the scales of features do not affect the rank."""
    largest = np.abs(points).max(axis=0, initial=0.0)
    return points / np.where(largest > 0, largest, 1)


def orthogonalize_points(points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonalizes points [num_points, dim]; each step chooses the point with the residual of largest norm.

    Returns:
        Coordinates [num_points, rank] in [-1, 1], in which the chosen points form a triangular matrix with ones on the
        diagonal; and the indices of the chosen points, [rank] int.
    """
    coordinates, chosen_points = _orthogonalize(points, lambda residuals, longest: (longest, residuals[longest]))
    return coordinates, np.array(chosen_points, int)


def orthogonalize_differences(arms: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthogonalizes all differences of two arms [num_arms, dim], for the initial design of Kumar and Yildirim (2005).

    The direction of each step is the residual with the largest norm. The step chooses the two arms that are farthest
    apart along this direction. The next direction is orthogonal to all chosen differences, which are therefore linearly
    independent.

    Returns:
        Coordinates [num_arms, rank] of the arms, with differences in [-2, 2]; and the chosen pairs, [rank, 2] int.
    """

    def choose(residuals: np.ndarray, longest: int) -> tuple[tuple[int, int], np.ndarray]:
        along = residuals @ residuals[longest]
        first, second = int(along.argmax()), int(along.argmin())
        return (first, second), residuals[first] - residuals[second]

    halves = arms / 2  # exact, and differences of halves do not overflow
    coordinates, pairs = _orthogonalize(halves - halves[:1], choose)  # each difference is rounded only once
    return coordinates, np.array(pairs, int).reshape(-1, 2)


def _orthogonalize(
    points: np.ndarray, choose: Callable[[np.ndarray, int], tuple[Any, np.ndarray]]
) -> tuple[np.ndarray, list[Any]]:
    """Removes directions from points [num_points, dim] until all residuals are rounding errors.

    `choose` receives the residuals and the index of the longest, and returns a step's choice and its direction. The
    function returns the coordinates [num_points, rank] and the choices.
    """
    residuals, chosen, columns = scaled_columns(points), [], []
    limit = 0.0
    for step in range(min(points.shape)):
        lengths = np.einsum("ij,ij->i", residuals, residuals)
        longest = int(lengths.argmax())
        length = np.sqrt(lengths[longest])
        limit = tolerance(points.shape[1], float) * length if step == 0 else limit
        if not length > limit:
            break
        choice, direction = choose(residuals, longest)
        multiples = residuals @ direction / (direction @ direction)
        residuals = residuals - multiples[:, None] * direction
        chosen.append(choice)
        columns.append(multiples)
    return np.array(columns).reshape(len(columns), len(points)).T, chosen

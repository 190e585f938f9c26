"""Maximizes ln det V(weights) over a finite set by the algorithm of Wynn and Fedorov with away steps, on the host.

V(weights) = sum_k weights_k z_k z_k^T. A step moves the weights towards a point z (a > 0) or away from it (a < 0):
weights <- (1 - a) weights + a e_z. A rank-one formula updates V^-1 and |z|^2_{V^-1} of all points. By the theorem of
Kiefer and Wolfowitz, max_z |z|^2_{V^-1} is at least the rank d, with equality if and only if the weights maximize ln
det V. The difference from d therefore certifies a design.
"""

from typing import Protocol

import numpy as np

SHARE = 0.25  # all points are examined when the gap on the current points is at most this share of the requested gap
NEW = 4  # at most NEW * rank points are added after an examination
MAX_EXAMINATIONS, MAX_STEPS = 500, 10_000


class PointSet(Protocol):
    """A finite set of points. Each point is identified by a row of integers, [columns] int.

    Attributes:
        rank: dimension d of the span of the points.
        start: [d, columns] int, points that have the same span as all points.
    """

    rank: int
    start: np.ndarray

    def vectors(self, indices: np.ndarray) -> np.ndarray:
        """Returns the coordinates of the given points. Shapes: indices [count, columns] int, result [count, rank]."""
        ...

    def farthest(self, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns points with large |z|^2_{V^-1}, including a point with the largest value.

        Args:
            factor: [rank, rank] lower triangular, V = factor factor^T.

        Returns:
            The points, [count, columns] int, and their |z|^2_{V^-1}, [count].
        """
        ...


def solve(points: PointSet, gap: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Finds a design with at most d (d + 1) / 2 points, and certifies that max |z|^2_{V^-1} <= d (1 + gap).

    Returns:
        (points [support, columns] int; weights [support], > 0, sum 1; max |z|^2_{V^-1} over all points).

    Raises:
        RuntimeError: if the gap is not reached after 500 examinations of all points, for example because the gap is
            smaller than rounding errors.
    """
    d = points.rank
    indices, weights = points.start, np.full(d, 1 / d)
    for _ in range(MAX_EXAMINATIONS):
        candidates, values = points.farthest(factor_of(points.vectors(indices), weights))
        if values.max() <= d * (1 + 0.99 * gap):
            break
        best = np.argsort(-values)[: NEW * d]
        best = best[values[best] > d * (1 + SHARE * gap)]
        indices = np.concatenate([indices, candidates[best]])
        indices, first, index = np.unique(indices, axis=0, return_index=True, return_inverse=True)
        joined = np.zeros(len(first))
        np.add.at(joined, index.ravel()[: len(weights)], weights)
        weights = ascend(points.vectors(indices), joined, SHARE * gap)
        indices, weights = indices[weights > 0], weights[weights > 0]
    vectors = points.vectors(indices)
    selected, weights = reduce_support(vectors, weights)
    indices = indices[selected]
    value = float(points.farthest(factor_of(points.vectors(indices), weights))[1].max())
    if not value <= d * (1 + gap):
        raise RuntimeError(f"a gap of {gap:g} was not reached: the best design has a gap of {value / d - 1:.3g}")
    return indices, weights, value


def factor_of(vectors: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Returns the lower triangular L with L L^T = sum_k weights_k z_k z_k^T."""
    return np.linalg.cholesky((vectors * weights[:, None]).T @ vectors)


def ascend(vectors: np.ndarray, weights: np.ndarray, gap: float) -> np.ndarray:
    """Improves weights until max |z|^2_{V^-1} <= d (1 + gap) over all vectors, or 10,000 steps are done.

    Shapes: vectors [count, d], weights [count]. The vectors with positive weights must span the space. New weights may
    be exactly 0.
    """
    d = vectors.shape[1]
    weights = weights / weights.sum()
    inverse, squares = squares_of(vectors, weights)
    for step in range(MAX_STEPS):
        if step % 100 == 99:  # removes accumulated rounding errors
            weights /= weights.sum()
            inverse, squares = squares_of(vectors, weights)
        far, near = int(squares.argmax()), int(np.where(weights > 0, squares, np.inf).argmin())
        if squares[far] <= d * (1 + gap):
            break
        towards = squares[far] - d >= d - squares[near]
        z = far if towards else near
        a = toward(squares[z], d) if towards else away(squares[z], weights[z], d)
        drops = not towards and a * (weights[z] - 1) >= weights[z]
        shrink, direction = a / (1 - a + a * squares[z]), inverse @ vectors[z]
        inverse = (inverse - shrink * np.outer(direction, direction)) / (1 - a)
        squares = (squares - shrink * (vectors @ direction) ** 2) / (1 - a)
        weights *= 1 - a
        weights[z] = 0 if drops else weights[z] + a
    return weights / weights.sum()


def squares_of(vectors: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Returns V^-1, where V = sum_k weights_k z_k z_k^T, and |z|^2_{V^-1} of each vector z."""
    factor = np.linalg.inv(factor_of(vectors, weights))
    return factor.T @ factor, ((vectors @ factor.T) ** 2).sum(axis=1)


def toward(square: float, d: int) -> float:
    """Returns the step size, in (0, 1/2], that maximizes ln det V towards a point z with square = |z|^2_{V^-1} > d."""
    # For d > 1 the maximizing step is below 1 / d. For d = 1 it would be 1, which would remove all other points.
    return min(0.5, (square / d - 1) / (square - 1))


def away(square: float, weight: float, d: int) -> float:
    """Returns the step size < 0 that maximizes ln det V away from a point z with square = |z|^2_{V^-1} < d.

    The maximum is over step sizes with which the weight of the point remains nonnegative.
    """
    longest = -weight / (1 - weight)
    return max(longest, (square / d - 1) / (square - 1)) if square > 1 else longest


def reduce_support(vectors: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Selects at most d (d + 1) / 2 points by Caratheodory's theorem, without making V smaller.

    If there are more points, their matrices z z^T are linearly dependent. Weights move along the dependence, in a
    direction in which their sum does not increase, until a weight is 0. This step does not change V. V does not
    decrease, either, when the weights are then rescaled to sum 1.

    Returns:
        The indices of the selected points, [count] int, and the new weights of these points, [count].
    """
    d = vectors.shape[1]
    rows, columns = np.tril_indices(d)
    selected = np.flatnonzero(weights > 0)
    weights = weights[selected] / weights[selected].sum()
    if len(selected) <= len(rows):
        return selected, weights
    moments = vectors[selected][:, rows] * vectors[selected][:, columns]  # [count, d (d + 1) / 2]
    dependences = np.linalg.svd(moments.T)[2][len(rows) :]  # count - d (d + 1) / 2 rows
    alive = np.ones(len(selected), bool)
    while len(dependences):
        along = dependences[0] if dependences[0].sum() <= 0 else -dependences[0]
        falling = alive & (along < 0)
        ratios = np.where(falling, weights / np.where(falling, -along, 1), np.inf)
        removed = int(ratios.argmin())
        weights = weights + ratios[removed] * along
        weights[removed], alive[removed] = 0, False
        pivot = int(np.abs(dependences[:, removed]).argmax())
        others = np.delete(dependences, pivot, axis=0)
        dependences = others - np.outer(others[:, removed] / dependences[pivot, removed], dependences[pivot])
        dependences[:, ~alive] = 0
    weights = np.maximum(weights, 0)
    return selected[weights > 0], weights[weights > 0] / weights.sum()

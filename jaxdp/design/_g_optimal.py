"""Computes G-optimal designs of finite sets, on the host in float64."""

from typing import NamedTuple

import numpy as np

from jaxdp.design import _coordinates as coordinates
from jaxdp.design._wynn_fedorov import solve
from jaxdp.validation import check_finite, check_positive

BLOCK = 2**18  # number of entries of the Gram matrix that are in memory at a time (2 MiB)


class Design(NamedTuple):
    """A design: weights on some points of a finite set.

    Attributes:
        support: [support] int32, indices of the points.
        weights: [support] float64 > 0, sum 1.
        rank: d, the dimension of the points' span.
        value: max |z|^2_{V(weights)^-1} over all points z, >= d up to rounding. V is defined in `g_optimal`; if the
            points do not span the space, V^-1 is the pseudo-inverse.
        gap: value / rank - 1, or 0 if rounding makes this negative.
    """

    support: np.ndarray
    weights: np.ndarray
    rank: int
    value: float
    gap: float


class PairDesign(NamedTuple):
    """A design on differences: weights on some pairs of arms.

    Attributes:
        pairs: [support, 2] int32, arms i > j; a pair represents the point x_i - x_j.
        weights: [support] float64 > 0, sum 1.
        rank: d, the dimension of the differences' span.
        value: max |z|^2_{V(weights)^-1} over all differences z, >= d up to rounding. V is defined in `g_optimal`; if
            the differences do not span the space, V^-1 is the pseudo-inverse.
        gap: value / rank - 1, or 0 if rounding makes this negative.
    """

    pairs: np.ndarray
    weights: np.ndarray
    rank: int
    value: float
    gap: float


def g_optimal(points: object, *, gap: float = 1e-3) -> Design:
    """Finds a G-optimal design with small support: |z|^2_{V^-1} <= rank (1 + gap) for all points z.

    Here V = sum_k weights_k z_k z_k^T, and |z|^2_{V^-1} = z^T V^-1 z. If N observations are allocated to the points in
    proportion to the weights, the standard error of the least-squares prediction at every point of the set is at most
    sqrt(value / N) times the standard deviation of one observation. The minimum of `value` is the rank.

    Args:
        points: [num_points, dim] numbers. Points may have duplicates, or lie in a subspace; in a subspace, V is the
            matrix for coordinates of the points' span. Each column is first divided by its largest magnitude. A
            direction counts towards the rank if a point has a component along it with a norm above 16 * dim * eps times
            the largest norm of a point, where eps is the machine epsilon of float64.
        gap: maximum relative distance of `value` from the optimum, > 0.

    Returns:
        A `Design` with at most rank (rank + 1) / 2 points in its support.

    Raises:
        ValueError: if points are not [num_points, dim] finite numbers or are all 0, or if gap is not finite and > 0.
        RuntimeError: if the gap is not reached, for example because the gap is smaller than rounding errors.

    Source:
        Fedorov (1972) and Wynn (1970), with the away steps of Atwood (1973); Kumar and Yildirim (2005) for the initial
        design; Kiefer and Wolfowitz (1960) for the certificate of optimality.

    Deviations:
        Steps use only the current points until the design on these points has a quarter of the requested gap. Then all
        points are examined, and the points with the largest |z|^2_{V^-1} are added. At the end the support is reduced
        by Caratheodory's theorem.

    Examples:
        >>> import numpy as np
        >>> design = g_optimal([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]])
        >>> print(design.support, design.weights, design.rank)
        [0 1] [0.5 0.5] 2
    """
    checked = _matrix("points", points)
    point_set = _Points(checked)
    if point_set.rank == 0:
        raise ValueError(f"points must not all be 0, got {len(checked)} of them")
    indices, weights, value = solve(point_set, check_positive("gap", gap))
    return Design(indices[:, 0].astype(np.int32), weights, point_set.rank, value, max(0.0, value / point_set.rank - 1))


def g_optimal_differences(arms: object, *, gap: float = 1e-3) -> PairDesign:
    """Finds a G-optimal design for all differences x_i - x_j of two arms.

    The design says how often to compare each pair of arms. The num_arms^2 differences are never in memory at the same
    time. In coordinates in which V is the identity, |x_i - x_j|^2 is G_ii + G_jj - 2 G_ij, where G is the Gram matrix
    of the arms; G is computed one block of rows at a time.

    Args:
        arms: [num_arms, dim] numbers. Arms may have duplicates, and differences may lie in a subspace, which is always
            the case if there are at most dim arms. See `g_optimal` for rank and V.
        gap: maximum relative distance of `value` from the optimum, > 0.

    Returns:
        A `PairDesign` with at most rank (rank + 1) / 2 pairs in its support.

    Raises:
        ValueError: if arms are not [num_arms, dim] finite numbers, if there are fewer than two arms or all arms are
            equal, or if gap is not finite and > 0.
        RuntimeError: if the gap is not reached, for example because the gap is smaller than rounding errors.

    Source:
        Fedorov (1972) and Wynn (1970); see `g_optimal`.

    Deviations:
        Most steps use only the current pairs, and the support is reduced at the end; see `g_optimal`.

    Examples:
        >>> design = g_optimal_differences([[0.0], [0.25], [1.0]])
        >>> print(design.pairs, design.weights, design.rank)
        [[2 0]] [1.] 1
    """
    checked = _matrix("arms", arms)
    if len(checked) < 2:
        raise ValueError(f"arms must be two or more, got {len(checked)}")
    pair_set = _Pairs(checked)
    if pair_set.rank == 0:
        raise ValueError(f"arms must not all be equal, got {len(checked)} times {checked[0].tolist()}")
    pairs, weights, value = solve(pair_set, check_positive("gap", gap))
    return PairDesign(pairs.astype(np.int32), weights, pair_set.rank, value, max(0.0, value / pair_set.rank - 1))


class _Points:
    def __init__(self, points: np.ndarray):
        self.all, start = coordinates.orthogonalize_points(points)
        self.start, self.rank = start[:, None], len(start)

    def vectors(self, indices: np.ndarray) -> np.ndarray:
        return self.all[indices[:, 0]]

    def farthest(self, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        lengths = (np.linalg.solve(factor, self.all.T) ** 2).sum(axis=0)
        best = np.argsort(-lengths)[: 8 * self.rank]
        return best[:, None], lengths[best]


class _Pairs:
    def __init__(self, arms: np.ndarray):
        self.all, start = coordinates.orthogonalize_differences(arms)
        self.start, self.rank = np.sort(start)[:, ::-1], len(start)

    def vectors(self, indices: np.ndarray) -> np.ndarray:
        return self.all[indices[:, 0]] - self.all[indices[:, 1]]

    def farthest(self, factor: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Returns, for each arm i > 0, the pair (i, j) with the farthest arm j < i, and its |x_i - x_j|^2_{V^-1}."""
        white = np.linalg.solve(factor, self.all.T).T
        white -= white.mean(axis=0)  # reduces cancellation
        lengths = np.einsum("ij,ij->i", white, white)
        pairs, values = [], []
        rows = max(1, BLOCK // len(white))
        for first in range(1, len(white), rows):
            ends = np.arange(first, min(first + rows, len(white)))
            gram = white[ends] @ white[: ends[-1]].T
            gram *= -2
            gram += lengths[None, : ends[-1]]  # |x_j|^2 - 2 x_i.x_j
            gram[np.arange(ends[-1])[None, :] >= ends[:, None]] = -np.inf
            partner = gram.argmax(axis=1)
            pairs.append(np.stack([ends, partner], axis=1))
            values.append(lengths[ends] + gram[np.arange(len(ends)), partner])
        return np.concatenate(pairs), np.concatenate(values)


def _matrix(name: str, values: object) -> np.ndarray:
    array = check_finite(name, values).astype(float)
    if array.ndim != 2 or 0 in array.shape:
        raise ValueError(f"{name} must be [number, dim], both > 0, got the shape {array.shape}")
    return array

"""Computes G-optimal designs of finite sets, on the host in float64."""

from typing import NamedTuple

import numpy as np

from jaxdp.design import _coordinates as coordinates
from jaxdp.design._wynn_fedorov import solve
from jaxdp.validation import check_finite, check_positive

BLOCK = 2**18  # number of entries of the Gram matrix that are in memory at once (2 MiB)


class Design(NamedTuple):
    """Weights on some points of a finite set.

    Attributes:
        support: [support] int32, indices of the points.
        weights: [support] float64 > 0, sum 1.
        rank: d, the dimension of the points' span.
        value: max |z|^2_{V(weights)^-1} over all points z, >= d. V is as in `g_optimal`; if the points do not span the
            space, V^-1 is the pseudo-inverse.
        gap: value / rank - 1, or 0 if rounding makes this negative.
    """

    support: np.ndarray
    weights: np.ndarray
    rank: int
    value: float
    gap: float


class PairDesign(NamedTuple):
    """Weights on some pairs of arms.

    Attributes:
        pairs: [support, 2] int32, arms i > j; the points are x_i - x_j.
        weights: [support] float64 > 0, sum 1.
        rank: d, the dimension of the differences' span.
        value: max |z|^2_{V(weights)^-1} over all differences z, >= d. V is as in `g_optimal`; if the differences do not
            span the space, V^-1 is the pseudo-inverse.
        gap: value / rank - 1, or 0 if rounding makes this negative.
    """

    pairs: np.ndarray
    weights: np.ndarray
    rank: int
    value: float
    gap: float


def g_optimal(points: object, *, gap: float = 1e-3) -> Design:
    """Finds weights on few points such that |z|^2_{V^-1} is at most rank (1 + gap) for all points z.

    V = sum_k weights_k z_k z_k^T, and |z|^2_{V^-1} = z^T V^-1 z. If N answers are divided among the points by the
    weights, the standard error of least squares at every point of the set is at most sqrt(value / N) times the standard
    deviation of an answer. The minimum of `value` is the rank.

    Args:
        points: [num_points, dim] numbers. Points may repeat, or lie in a subspace; V is then the matrix for coordinates
            of their span. Each column is first divided by its largest absolute entry. A direction counts towards the
            rank if a point has a component along it that is longer than 16 * dim * eps times the longest point, with
            eps the machine epsilon of float64.
        gap: largest relative distance of `value` from the optimum, > 0.

    Returns:
        A `Design` of at most rank (rank + 1) / 2 points.

    Raises:
        ValueError: if points are not [num_points, dim] finite numbers or are all 0, or if gap is not finite and > 0.
        RuntimeError: if the gap is not reached, for example because it is smaller than rounding errors.

    Source:
        Fedorov (1972) and Wynn (1970), with the away steps of Atwood (1973); Kumar and Yildirim (2005) for the start;
        Kiefer and Wolfowitz (1960) for the certificate.

    Deviations:
        Steps use only the current points until the design on these points has a quarter of the gap. Then all points are
        examined, and the farthest are added. At the end the support is reduced by Caratheodory's theorem.

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
    """Finds a `g_optimal` design for all differences x_i - x_j of two arms, which says how often to compare each pair.

    The num_arms^2 differences are never in memory at once. In coordinates in which V is the identity, |x_i - x_j|^2 is
    G_ii + G_jj - 2 G_ij, where G is the Gram matrix of the arms; a block of rows of G is computed at once.

    Args:
        arms: [num_arms, dim] numbers. Arms may repeat, and differences may lie in a subspace, as they always do if
            there are at most dim arms. See `g_optimal` for rank and V.
        gap: largest relative distance of `value` from the optimum, > 0.

    Returns:
        A `PairDesign` of at most rank (rank + 1) / 2 pairs.

    Raises:
        ValueError: if arms are not [num_arms, dim] finite numbers, are fewer than two, or are all equal, or if gap is
            not finite and > 0.
        RuntimeError: if the gap is not reached, for example because it is smaller than rounding errors.

    Source:
        Fedorov (1972) and Wynn (1970); see `g_optimal`.

    Deviations:
        Steps use only the current pairs for most of the time, and the support is reduced at the end; see `g_optimal`.

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
        """Returns pairs (i, j), for each arm i > 0 with the farthest arm j < i, and their |x_i - x_j|^2_{V^-1}."""
        white = np.linalg.solve(factor, self.all.T).T
        white -= white.mean(axis=0)  # keeps cancelling terms small
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

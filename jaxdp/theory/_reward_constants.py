"""Computes the constants in the bounds of Chowdhury, Zhou & Natarajan (2023), DP-Reward.

The module `reward_estimation` defines the notation and uses these constants.
"""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.theory.arguments import at_least, between, positive

ASYMMETRY = 1e-5  # covariances in float32 are asymmetric by less than this fraction of their largest entry


def curvature(feature_norm: ArrayLike, radius: ArrayLike) -> np.ndarray:
    """Returns gamma = 1 / (2 + exp(-2 L B) + exp(2 L B)) = sigmoid'(2 L B), the minimum of sigmoid' on [-2 L B, 2 L B].

    Source:
        Assumption 2.1 and Theorem 4.2.
    """
    margin = 2 * positive("feature_norm", feature_norm) * positive("radius", radius)
    return np.exp(-margin) / (1 + np.exp(-margin)) ** 2


def plackett_luce_curvature(feature_norm: ArrayLike, radius: ArrayLike) -> np.ndarray:
    """Returns gamma = exp(-4 L B) / 2 for choices among several actions (Plackett-Luce model).

    Source:
        Theorem C.2. (Section 4.4 prints exp(-4 L B) without the factor 1/2.)
    """
    product = positive("feature_norm", feature_norm) * positive("radius", radius)
    return np.exp(-4 * product) / 2


def coverage(covariance: ArrayLike) -> np.ndarray:
    """Returns kappa, the smallest eigenvalue of the covariance of feature differences.

    Args:
        covariance: [..., dim, dim] symmetric, E[x x^T].

    Returns:
        [...], the smallest eigenvalue of each matrix; it is >= 0 except for rounding errors.

    Raises:
        ValueError: if covariance is not an array of finite, symmetric matrices.

    Source:
        Assumption 4.4.
    """
    matrix = between("covariance", covariance, -np.inf, np.inf)
    if matrix.ndim < 2 or matrix.shape[-1] != matrix.shape[-2] or not matrix.shape[-1]:
        raise ValueError(f"covariance must have shape [..., dim, dim], got {matrix.shape}")
    gap = np.abs(matrix - np.swapaxes(matrix, -1, -2)).max(axis=(-1, -2), initial=0)
    if (gap > ASYMMETRY * np.abs(matrix).max(axis=(-1, -2), initial=0)).any():
        raise ValueError(f"covariance must be symmetric, got entries that differ from their transpose by {gap.max():g}")
    return np.linalg.eigvalsh(matrix)[..., 0]


def largest_coverage(feature_norm: ArrayLike, dim: ArrayLike, *, corrected: bool = False) -> np.ndarray:
    """Returns the largest possible kappa: L^2 / d as printed, or (2 L)^2 / d if corrected.

    Kappa is at most the mean of the eigenvalues, which is trace / d, and the trace is at most max |x|^2.

    Source:
        Section 4.3, "kappa = O(L^2 / d)".
    """
    return largest_difference(feature_norm, corrected) ** 2 / at_least("dim", dim, 1)


def largest_difference(feature_norm: ArrayLike, corrected: bool) -> np.ndarray:
    """Returns the bound on the norm of a feature difference: L as printed in the paper, or 2 L if corrected."""
    return (2 if corrected else 1) * positive("feature_norm", feature_norm)

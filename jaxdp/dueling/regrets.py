"""The forms of regret of a duel, as matrices over the ordered pairs of arms."""

import numpy as np

from jaxdp.core import default_float
from jaxdp.preferences import borda_gaps, condorcet_winner, preference_gaps


def regret_matrices(preferences: np.ndarray) -> dict[str, np.ndarray]:
    """Computes each form of regret of every duel from a preference matrix.

    Args:
        preferences: [num_arms, num_arms] float64, a preference matrix.

    Returns:
        [num_arms, num_arms] float64 for each name. With w the Condorcet winner, gap(i) = P[w, i] - 1/2, and b the Borda
        scores over all other arms: `borda_regret`, max b - (b[left] + b[right]) / 2 (Saha, Koren & Mansour, 2021);
        `strong_regret`, gap(left) + gap(right) (DP-Dueling, Saha & Asi, 2024, appendix B), and `weak_regret`,
        min(gap(left), gap(right)) (Yue, Broder, Kleinberg & Joachims, 2012), only if there is a Condorcet winner.
    """
    borda = borda_gaps(preferences)
    regrets = {"borda_regret": np.add.outer(borda, borda) / 2}
    if condorcet_winner(preferences) >= 0:
        gaps = preference_gaps(preferences)
        regrets |= {"strong_regret": np.add.outer(gaps, gaps), "weak_regret": np.minimum.outer(gaps, gaps)}
    return regrets


def cast(values: np.ndarray) -> np.ndarray:
    """Converts host numbers to a leaf of `Params`, in JAX's default float type."""
    return values.astype(default_float())

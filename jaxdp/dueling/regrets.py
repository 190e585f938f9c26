"""The forms of regret of a duel, as matrices over the ordered pairs of arms."""

import numpy as np

from jaxdp.core import default_float
from jaxdp.preferences import borda_gaps, condorcet_winner, preference_gaps


def regret_matrices(preferences: np.ndarray) -> dict[str, np.ndarray]:
    """Computes the regret of every duel, in each form of regret, from a preference matrix.

    Args:
        preferences: [num_arms, num_arms] float64, a preference matrix.

    Returns:
        A dictionary of [num_arms, num_arms] float64 matrices keyed by name. Let gap(i) = P[w, i] - 1/2 for the
        Condorcet winner w, and b(i) be the Borda score over all other arms. `borda_regret` is max b - (b(left) +
        b(right)) / 2 (Saha, Koren & Mansour, 2021). If there is a Condorcet winner, `strong_regret` is gap(left) +
        gap(right) (DP-Dueling, Saha & Asi, 2024, appendix B), and `weak_regret` is min(gap(left), gap(right)) (Yue,
        Broder, Kleinberg & Joachims, 2012). Otherwise these two names are missing.
    """
    borda = borda_gaps(preferences)
    regrets = {"borda_regret": np.add.outer(borda, borda) / 2}
    if condorcet_winner(preferences) >= 0:
        gaps = preference_gaps(preferences)
        regrets |= {"strong_regret": np.add.outer(gaps, gaps), "weak_regret": np.minimum.outer(gaps, gaps)}
    return regrets


def cast(values: np.ndarray) -> np.ndarray:
    """Converts NumPy numbers to a leaf of `Params`, in JAX's default float type."""
    return values.astype(default_float())

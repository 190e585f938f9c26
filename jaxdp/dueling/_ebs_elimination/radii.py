"""Tables for elimination by effective Borda scores: maximal errors of shares of wins, and of counters."""

import math
from typing import NamedTuple

import numpy as np

from jaxdp.core import default_float
from jaxdp.mechanisms.continual_counting.arity import level_variances
from jaxdp.mechanisms.continual_counting.radii import block_cumulant

MOST_EPOCHS = 200
LATTICE_BITS = 8


class NoiseLines(NamedTuple):
    """Radii of a counter's noise, linear in the digits of its clock. Each line is valid; the lowest one is used.

    Attributes:
        intercepts: [lines] float64.
        slopes: [levels, lines] float64, a line's rise with each digit, the lowest first.
    """

    intercepts: np.ndarray
    slopes: np.ndarray


def score_radii(num_arms: int, horizon: int, failure_prob: float) -> np.ndarray:
    """Bounds the errors of sums of wins at all times, for each size of the active set.

    Let S be a fixed set of k arms. As long as all of S is active, arm i's duels as the left one with arms in S are
    independent, and won with probability B_S(i) each: an opponent is uniform over the active arms, so uniform over S if
    it is in S. For x > 0 and any rate, exp(rate (wins - n B) - n rate^2 / 8) is a supermartingale. So by Ville's
    inequality, except with probability exp(-x), for all n at once

        wins - n B < sqrt(x n / 2) (sqrt(m / n) + sqrt(n / m)) / 2,  m = 8 x / rate^2.

    Among E numbers m, in geometric progression with ratio w = T^(1 / E), one lies within a factor of sqrt(w) of any n
    <= T. There the right side is at most c sqrt(x n / 2), c = (w^(1/4) + w^(-1/4)) / 2. One-sided bounds are needed: on
    the best arm's wins from below and on all other arms' from above. They fail with probability at most failure_prob
    over K arms, K - 1 sizes and all sets of each size with the arm, if x is ln(E K (K - 1) C(K - 1, k - 1) /
    failure_prob). The E that minimises c^2 x is used.

    Args:
        num_arms: K, >= 2.
        horizon: T, >= 1.
        failure_prob: in (0, 1).

    Returns:
        [num_arms + 1] float64: r^2, at index k, such that wins deviate by less than r sqrt(n).

    Source:
        Ville (1939); Howard, Ramdas, McAuliffe & Sekhon (2021) for lines stitched together.
    """
    epochs = np.arange(1, MOST_EPOCHS + 1)
    quarter = np.exp(math.log(horizon) / epochs / 4)
    widths = np.square((quarter + 1 / quarter) / 2)
    table = np.zeros(num_arms + 1)
    for size in range(2, num_arms + 1):
        sets = math.log(num_arms) + math.log(num_arms - 1) + math.log(math.comb(num_arms - 1, size - 1))
        table[size] = (widths * (sets - math.log(failure_prob) + np.log(epochs))).min() / 2
    return table


def noise_lines(
    *, arity: int, levels: int, combine: bool, noise: str, scale: float, quantum: float, failure_prob: float
) -> NoiseLines:
    """Bounds a tree counter's error, from above or from below, except with probability failure_prob at each time.

    Chernoff's bound for any rate, (ln(1 / failure_prob) + ln E exp(rate * error)) / rate, is linear in the digits of
    the clock, d_h blocks of each level h. The lines belong to the rates that are best for typical clocks of each
    length. They are within 1% of the best rate for most clocks, within 25% if a prefix is only a few blocks; with
    Laplace noise in binary trees, a fifth above it. For Gaussian noise ln(1 / failure_prob) becomes half the squared
    quantile; its best line is the quantile itself.

    Args:
        arity: of the tree.
        levels: of the tree.
        combine: whether nodes are combined with their descendants.
        noise: "laplace" or "gaussian".
        scale: of a node's noise, >= 0.
        quantum: nodes' noisy sums are rounded to its multiples.
        failure_prob: in (0, 1).

    Returns:
        The lines.
    """
    from scipy.optimize import minimize_scalar  # SciPy only where it is used
    from scipy.special import ndtri

    variances = level_variances(arity, levels, combine)
    normal = noise == "gaussian"
    log_inverse = ndtri(failure_prob) ** 2 / 2 if normal else -math.log(failure_prob)
    largest = math.inf if normal else 1 / variances.max()

    def cumulants(rate: float) -> np.ndarray:
        if normal:
            return variances * rate**2 / 2
        return np.asarray([float(block_cumulant(h, np.asarray(rate), arity, variances)) for h in range(levels)])

    def best_rate(digits: np.ndarray) -> float:
        if normal:
            return math.sqrt(2 * log_inverse / (digits @ variances))
        optimum = minimize_scalar(
            lambda rate: (log_inverse + digits @ cumulants(rate)) / rate,
            bounds=(1e-6 * largest, (1 - 1e-6) * largest),
            method="bounded",
        )
        return float(optimum.x)  # pyright: ignore[reportAttributeAccessIssue]

    typical = [np.where(np.arange(levels) <= h, arity / 2, 0.0) for h in range(levels)]
    rates = np.asarray([best_rate(digits) for digits in [*typical, np.full(levels, arity - 1.0)]])
    slopes = np.stack([scale * cumulants(rate) / rate for rate in rates], axis=1)
    rounding_errors = np.ones(levels)  # of a block's estimate, if every node is rounded by 1
    for h in range(1, levels):
        rounding_errors[h] = variances[h] + (1 - variances[h]) * arity * rounding_errors[h - 1]
    rounding = (arity - 1) * rounding_errors.sum() * quantum / 2
    return NoiseLines(scale * log_inverse / rates + (rounding if scale > 0 else 0.0), slopes)


def on_lattice(values: np.ndarray, scale: float) -> np.ndarray:
    """Rounds numbers >= 0 up to multiples of about 2^-8 scale, in JAX's default float type.

    Products with digits and sums of such numbers are exact in float32, in any order, up to 2^16 scale.
    """
    unit = 2.0 ** (math.ceil(math.log2(scale)) - LATTICE_BITS) if scale > 0 else 1.0
    return (np.ceil(values / unit) * unit).astype(default_float())

"""Tables for elimination by effective Borda scores: bounds on the errors of numbers of wins and of counters."""

import math
from typing import NamedTuple

import numpy as np

from jaxdp.core import default_float
from jaxdp.mechanisms.continual_counting.arity import level_variances
from jaxdp.mechanisms.continual_counting.radii import block_cumulant

MOST_EPOCHS = 200
LATTICE_BITS = 8


class NoiseLines(NamedTuple):
    """Bounds on a counter's error, linear in the digits of its clock (its number of entries).

    All lines are valid; the lowest is used.

    Attributes:
        intercepts: [lines] float64, >= 0.
        slopes: [levels, lines] float64, each line's slope in each digit of the clock, from the lowest digit.
    """

    intercepts: np.ndarray
    slopes: np.ndarray


def score_radii(num_arms: int, horizon: int, failure_prob: float) -> np.ndarray:
    """Returns bounds on the errors of sums of wins at all times, for each size of the active set.

    With probability at least 1 - failure_prob, at all times and for all active sets, the best arm's wins are at most
    r sqrt(n) below their mean, and the other arms' wins at most r sqrt(n) above. The proof is in
    `docs/proofs/ebs_elimination.md`, section "Shares of wins".

    Args:
        num_arms: K, >= 2.
        horizon: T, >= 1.
        failure_prob: in (0, 1).

    Returns:
        [num_arms + 1] float64: entry k is r^2 for sets of k arms; 0 for k < 2.

    Source:
        Ville (1939); Howard, Ramdas, McAuliffe & Sekhon (2021) for the stitching of several lines.
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
    """Computes one-sided bounds on a tree counter's error; each bound fails with probability at most failure_prob.

    The probability is for each time separately. Each line is a Chernoff bound: `docs/proofs/ebs_elimination.md`,
    section "Errors of counters".

    Args:
        arity: arity of the tree.
        levels: number of levels of the tree.
        combine: as for `tree_counter`.
        noise: "laplace" or "gaussian".
        scale: the scale of a node's noise, >= 0.
        quantum: noisy sums of nodes are rounded to multiples of this number.
        failure_prob: in (0, 1).

    Returns:
        The lines.
    """
    from scipy.optimize import minimize_scalar  # imported here because SciPy is slow to import
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
    rounding_errors = np.ones(levels)  # errors of blocks' estimates if every node has a rounding error of 1
    for h in range(1, levels):
        rounding_errors[h] = variances[h] + (1 - variances[h]) * arity * rounding_errors[h - 1]
    rounding = (arity - 1) * rounding_errors.sum() * quantum / 2
    return NoiseLines(scale * log_inverse / rates + (rounding if scale > 0 else 0.0), slopes)


def on_lattice(values: np.ndarray, scale: float) -> np.ndarray:
    """Rounds nonnegative numbers up to multiples of about 2^-8 * scale, in JAX's default float type.

    Products of the rounded numbers with base-arity digits, and sums of such products in any order, are exact in float32
    up to 2^16 * scale.
    """
    step = 2.0 ** (math.ceil(math.log2(scale)) - LATTICE_BITS) if scale > 0 else 1.0
    return (np.ceil(values / step) * step).astype(default_float())

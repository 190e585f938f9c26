"""Computes, on the host, bounds on the delta that numerical error adds, for `Guarantee.numerical_delta`.

All bounds count only releases that depend on the data of one privacy unit, here called "the unit". Other releases have
the same exact values for both neighbours, so the program gives them the same distribution. A bound is None if there is
no noise, or if it is not below 1. `docs/proofs/numerical_delta.md` proves the bounds for Laplace, geometric and normal
noise.
"""

import math

from jaxdp.mechanisms._grid import FEW
from jaxdp.mechanisms._integer_noise import ONE_DIGIT
from jaxdp.mechanisms.calibration import analytic_gaussian
from jaxdp.mechanisms.sparse_vector import SPLITS

FINE, COARSE = 2.0**17 * (1 + 2**-10), 2.0**11 * (1 + 2**-10)  # largest numbers of steps in a rounded sensitivity
NORMAL_STEPS = 2.0**25  # largest number of steps in a standard deviation
TOEPLITZ_STEPS = 2.0**27.1  # largest number of steps in a standard deviation of `toeplitz_counter`
MAX_DIM = {"gaussian": 4096, "k_norm": 100}  # by noise: a factory's default `max_dim`, the maximum vector length
K_NORM = 1e-9  # delta of `k_norm` at epsilon from 0.01 to 10, divided by numbers^(3/2)
NORMAL_FACTOR = 2.0**-43.9
SELECTION = 2.0**-35  # for an index of `noisy_max`: twice the relative error of its probabilities


def laplace_delta(
    epsilon: float, *, releases: int = 1, numbers: int = 1, spread: int = 1, l1_sensitivity: float = 1.0
) -> float | None:
    """Returns a bound on the delta that numerical error adds to Laplace releases that depend on one unit.

    Args:
        epsilon: budget of each release, > 0.
        releases: number of consecutive releases that depend on the unit.
        numbers: number of entries of a release that the unit changes.
        spread: number of floats, or of entries of a `Sum`, in a release; more of them have finer steps.
        l1_sensitivity: L1 sensitivity of integers; beyond 2^11 it matters, because steps are at most 1.

    Source:
        Dwork & Roth (2014), Theorem 3.16: deltas of releases add up.

    Examples:
        >>> f"{laplace_delta(1.0):.1e}"
        '1.9e-10'
    """
    if math.isinf(epsilon):
        return None
    coarse = max(COARSE * 2 ** math.ceil(math.log2(spread)), l1_sensitivity)
    steps = max(min(FEW, FINE / epsilon), coarse / epsilon)
    return below_one(releases * numbers * _one_laplace(steps, epsilon))


def geometric_delta(epsilon: float) -> float | None:
    """Returns a bound on the delta that numerical error adds to one number with geometric noise."""
    if math.isinf(epsilon):
        return None
    return below_one(2 * _one_laplace(1 / epsilon + 1, epsilon))


def _one_laplace(steps: float, epsilon: float) -> float:
    """Returns a bound on the delta of one number with Laplace noise of a scale of `steps` steps."""
    words = 2.0**-58.5 * (1 + math.exp(min(epsilon, 700.0)))
    return min(steps, ONE_DIGIT) * (2.0**-48.9 * (1 + epsilon / 2) + words)


def normal_delta(numbers: int, *, rho: float, steps: float = NORMAL_STEPS) -> float | None:
    """Returns a bound on the delta that numerical error adds to Gaussian releases that depend on one unit.

    Args:
        numbers: number of numbers that the unit changes; their noises are independent, drawn consecutively or together.
        rho: total zCDP budget of these numbers, > 0.
        steps: largest number of grid steps in a standard deviation.

    Returns:
        The bound, for every epsilon; None if rho, numbers or steps is too large for a bound below 1.

    Examples:
        >>> f"{normal_delta(1, rho=0.1):.1e}"
        '7.4e-10'
    """
    if not rho < 300 or steps * numbers > 2.0**86:
        return None
    deviation = math.sqrt(math.expm1(numbers * steps * NORMAL_FACTOR**2))
    return below_one((1 + math.exp(rho)) * deviation + numbers * 2.0**-62)


def tree_steps(stddev: float, unit: float) -> float:
    """Returns an upper bound, in grid steps, on the stddev of a Gaussian tree's noise; `unit` divides all sums."""
    return max(2.0**26, 2 * stddev / unit)


def gaussian_rho(epsilon: float, delta: float) -> float:
    """Returns the rho of Gaussian noise calibrated to epsilon and delta; infinity if there is no noise."""
    stddev = analytic_gaussian(epsilon, delta)
    return 0.5 / stddev**2 if stddev > 0 else math.inf


def selection_delta(num_scores: int, epsilon: float, *, selections: int = 1) -> float | None:
    """Returns a bound on the delta that numerical error adds to selections by `noisy_max` that depend on one unit.

    Args:
        num_scores: number of scores in a selection.
        epsilon: budget of each selection, > 0.
        selections: number of consecutive selections that depend on the unit.
    """
    if math.isinf(epsilon):
        return None
    unlikely = num_scores * 2.0**-53 * math.exp(min(epsilon, 700.0))  # probability of indices that may never be drawn
    return below_one(selections * (SELECTION + unlikely))


def weighted_delta(num_scores: int, draws: int) -> float | None:
    """Returns a bound on the delta that numerical error adds to draws by `fine_index` with weights exp(-score).

    Weights in float64 are off by factors of 1 + 2^-42, and probabilities by 2^-53.

    Args:
        num_scores: number of scores in a draw.
        draws: number of consecutive draws that depend on one unit.
    """
    return below_one(2 * draws * (2.0**-42 + num_scores * 2.0**-52))


def vector_delta(epsilon: float, delta: float | None, *, numbers: int) -> float | None:
    """Returns a bound on the delta that numerical error adds to one vector release with normal or K-norm noise.

    Args:
        epsilon: budget of the release, > 0.
        delta: delta of the Gaussian mechanism; None for `k_norm`.
        numbers: maximum length of the vector.
    """
    if math.isinf(epsilon):
        return None
    if delta is not None:
        return normal_delta(numbers, rho=gaussian_rho(epsilon, delta))
    words = math.exp(min(max(0.0, epsilon - 10), 700.0))  # far from 0 the resolution of random words matters
    return below_one(K_NORM * numbers**1.5 * max(1.0, (0.01 / epsilon) ** 2) * words)


def sparse_vector_delta(epsilon: float, *, split: str = "even") -> float | None:
    """Returns a bound on the delta that numerical error adds to a run of the sparse vector technique.

    The privacy proof shifts only two noises: the noise of the threshold, and the noise of the query that is reported
    above. So only these two noises need accurate probabilities.

    Args:
        epsilon: budget of the whole run, > 0.
        split: how epsilon is divided between threshold and queries, as in `above_threshold`.
    """
    if math.isinf(epsilon):
        return None
    for_threshold = SPLITS[split] * epsilon
    for_query = epsilon - for_threshold
    steps = max(FEW, 2 * COARSE / for_query)  # a query moves by twice its sensitivity; the threshold has fewer steps
    return below_one(_one_laplace(steps, for_threshold) + _one_laplace(steps, for_query))


def nodes_delta(epsilon: float, levels: int) -> float | None:
    """Returns a bound on the delta that numerical error adds to a Laplace tree, if one unit affects one node per level.

    Args:
        epsilon: budget of all nodes together, > 0.
        levels: number of levels of the tree.
    """
    # `levels` numbers together have a sensitivity of `levels`, so a step is at least half as large as for one number
    return laplace_delta(epsilon / levels, releases=levels, spread=2)


def all_of(*deltas: float | None) -> float | None:
    """Returns the delta of consecutive releases; None if the delta of a release is unknown, or the sum reaches 1."""
    return None if None in deltas else below_one(sum(delta for delta in deltas if delta is not None))


def below_one(delta: float) -> float | None:
    """Returns the bound if it is below 1, otherwise None."""
    return delta if delta < 1 else None

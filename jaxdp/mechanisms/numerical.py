"""What the program's arithmetic adds to delta: proved bounds on the host, for `Guarantee.numerical_delta`.

All count what one unit of privacy enters. Other releases have the same exact values for both neighbours, and one
program has one distribution. Functions of float64 are taken to be right within two units in the last place, and random
bits to be ideal.

Laplace noise of s steps up to 2^22 is one digit, of a variate v that is off by 2^-51.4 v and 2^-53. So an integer's
probability is off by a factor of 1 + s (2^-50.4 v + 2^-52). The mean of v is 1 under one neighbour, and at most 1 +
epsilon under the other. Where probabilities of a release are off by factors of 1 + a and 1 + b, delta is at most the
mean of a + b, s 2^-48.9 (1 + epsilon / 2): what is likelier by more than e^epsilon is so by no more. Of more steps
noise has two digits, of which the first is like noise of 2^17 steps, and the second one's probabilities are off by
factors of less than 1 + 2^-33: together by less.

Normal noise of s steps is two digits from Box and Muller's transform, which is off by 2^-48.5 r + 2^-52 / r, r its
radius. So factors are off by 2^-43.9 of the root of s in root mean square, a; they are 1 in the mean. Those of n
numbers, drawn one after the other, multiply to a number that is sqrt((1 + a^2)^n - 1) from 1 in root mean square, and
the neighbour's at most e^rho times that under the other one (Cauchy and Schwarz, with the divergence of order 2).
"""

import math

from jaxdp.mechanisms.calibration import analytic_gaussian

LAPLACE_STEPS = 2.0**22  # of a sensitivity, at most, unless many numbers share it; and the most of one digit
NORMAL_STEPS = 2.0**25  # of a standard deviation
TOEPLITZ_STEPS = 2.0**27.1  # the same of `toeplitz_counter`
NUMBERS = 100  # in a vector whose length a claim does not know
K_NORM = 1e-9  # of `k_norm` at epsilon >= 0.01, times numbers^(3/2)
NORMAL_FACTOR = 2.0**-43.9
SELECTION = 2.0**-35  # of an index by `noisy_max`: twice what its probabilities are off by


def laplace_delta(
    epsilon: float, *, releases: int = 1, numbers: int = 1, sensitivity: float = 1.0, spread: int = 1
) -> float | None:
    """Bounds what arithmetic adds to delta where a unit is in releases by the Laplace mechanism.

    Args:
        epsilon: of each release, > 0.
        releases: that the unit is in, one after the other.
        numbers: how many numbers of a release the unit changes.
        sensitivity: that is declared of a release.
        spread: numbers of a release, if they are floats: their steps are finer.

    Returns:
        The bound; None where there is no noise, or no bound below 1.

    Source:
        Dwork & Roth (2014), Theorem 3.16: deltas of releases add up.

    Examples:
        >>> f"{laplace_delta(1.0):.1e}"
        '1.2e-08'
    """
    if math.isinf(epsilon):
        return None
    steps = min(LAPLACE_STEPS, LAPLACE_STEPS * max(1.0, float(spread), sensitivity / 4) / epsilon)
    ends = math.exp(min(epsilon, 700.0)) * 2.0**-62  # what noise ends before
    return below_one(releases * numbers * (steps * 2.0**-48.9 * (1 + epsilon / 2) + ends))


def normal_delta(numbers: int, *, rho: float, steps: float = NORMAL_STEPS) -> float | None:
    """Bounds what arithmetic adds to delta where a unit changes so many numbers with normal noise.

    Args:
        numbers: with independent noise, drawn one after the other or at once.
        rho: zero-concentrated budget of all of it, > 0.
        steps: of the grid in a standard deviation, at most.

    Returns:
        The bound, for every epsilon; None where there is no noise, or no bound below 1.

    Examples:
        >>> f"{normal_delta(1, rho=0.1):.1e}"
        '7.4e-10'
    """
    if not rho < 300 or steps * numbers > 2.0**86:
        return None
    apart = math.sqrt(math.expm1(numbers * steps * NORMAL_FACTOR**2))
    return below_one((1 + math.exp(rho)) * apart + numbers * 2.0**-62)


def tree_steps(stddev: float, unit: float) -> float:
    """Returns the most steps in a standard deviation of a Gaussian tree's noise, for sums of multiples of a unit."""
    return max(2.0**26, 2 * stddev / unit)


def gaussian_rho(epsilon: float, delta: float) -> float:
    """Returns the rho of Gaussian noise that is made for epsilon and delta; infinity without noise."""
    stddev = analytic_gaussian(epsilon, delta)
    return 0.5 / stddev**2 if stddev > 0 else math.inf


def selection_delta(num_scores: int, epsilon: float, *, selections: int = 1) -> float | None:
    """Bounds what arithmetic adds to delta where a unit is in the scores of indices by `noisy_max`.

    Args:
        num_scores: of a selection.
        epsilon: of each selection, > 0.
        selections: that the unit is in, one after the other.

    Returns:
        The bound; None where there is no noise, or no bound below 1.
    """
    if math.isinf(epsilon):
        return None
    unlikely = num_scores * 2.0**-53 * math.exp(min(epsilon, 700.0))  # what may never be drawn
    return below_one(selections * (SELECTION + unlikely))


def weighted_delta(num_scores: int, draws: int) -> float | None:
    """Bounds what arithmetic adds to delta where a unit is in the weights exp(-score) of draws by `fine_index`.

    Weights in float64 are off by factors of 1 + 2^-42, and probabilities by 2^-53.

    Args:
        num_scores: of a draw.
        draws: that the unit is in, one after the other.
    """
    return below_one(2 * draws * (2.0**-42 + num_scores * 2.0**-52))


def vector_delta(epsilon: float, delta: float | None, *, numbers: int = NUMBERS) -> float | None:
    """Bounds what arithmetic adds to delta of a vector that is released once, with normal noise or by the K-norm.

    Args:
        epsilon: of the release, > 0.
        delta: of the Gaussian mechanism; None for `k_norm`.
        numbers: in the vector, at most.
    """
    if math.isinf(epsilon):
        return None
    if delta is not None:
        return normal_delta(numbers, rho=gaussian_rho(epsilon, delta))
    return below_one(K_NORM * numbers**1.5 * max(1.0, (0.01 / epsilon) ** 2))


def sparse_vector_delta(epsilon: float) -> float | None:
    """Bounds what arithmetic adds to delta where a unit is in the questions of one run of the sparse vector technique.

    Of all noise that of the threshold moves, by half of epsilon, and that of the question that is reported above: all
    others are below a threshold that has moved with them, whatever the distribution of their noise.

    Args:
        epsilon: of the run, > 0.
    """
    return laplace_delta(epsilon / 2, releases=2, sensitivity=16.0)


def nodes_delta(epsilon: float, levels: int) -> float | None:
    """Bounds what arithmetic adds to delta where a unit is in a node of each level of a tree with Laplace noise.

    Args:
        epsilon: of all nodes, > 0.
        levels: of the tree.
    """
    return laplace_delta(epsilon / levels, releases=levels, sensitivity=4.0 * levels)


def all_of(*deltas: float | None) -> float | None:
    """Returns the delta of releases one after the other; None where one is not known."""
    return None if None in deltas else below_one(sum(delta for delta in deltas if delta is not None))


def below_one(delta: float) -> float | None:
    """Returns the bound, if it says something."""
    return delta if delta < 1 else None

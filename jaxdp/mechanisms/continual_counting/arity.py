"""Computes the exact variance of a tree's estimates, and the arity that minimises it, with NumPy on the host."""

import numpy as np
from numpy.typing import ArrayLike

from jaxdp.mechanisms.continual_counting.counter import check_times
from jaxdp.mechanisms.continual_counting.noise import NOISES
from jaxdp.validation import check_choice, check_flag, check_horizon

OBJECTIVES = ("mean", "max")
LARGEST = 1000  # largest arity that is tried; a larger one needs too many blocks in a level, (arity - 1) / 2 on average


def check_arity(arity: int) -> int:
    """Returns the arity as an int, after checking that it is >= 2 and that JAX's integers can count in this base.

    Raises:
        ValueError: if arity is not an integer >= 2, or is too large.
    """
    return check_horizon(arity, name="arity", minimum=2, spare=1)


def num_digits(number: int, arity: int) -> int:
    """Returns the number of digits of a number >= 1 in base arity."""
    count = 0
    while number:
        number, count = number // arity, count + 1
    return count


def level_variances(arity: int, levels: int, combine: bool) -> np.ndarray:
    """Returns the variance of a completed block's estimate at each level ([levels]) if a node's noise has variance 1.

    Source:
        Honaker (2015): an estimate averages a node's own noisy sum (variance 1) and the sum of its children's
        estimates (variance: arity times the variance of one child's estimate), with weights proportional to the
        inverse variances. Without `combine` all variances are 1.
    """
    variances = np.ones(levels)
    for h in range(1, levels if check_flag("combine", combine) else 0):
        children = arity * variances[h - 1]
        variances[h] = children / (1 + children)
    return variances


def digits_of(times: np.ndarray, arity: int, levels: int) -> np.ndarray:
    """Returns the base-`arity` digits of times ([..., levels]), lowest first: a prefix's number of blocks by level."""
    return times[..., None] // np.asarray([arity**h for h in range(levels)], np.int64) % arity


def tree_variance(
    times: ArrayLike, *, horizon: int, arity: int, noise: str = "laplace", combine: bool = True
) -> np.ndarray:
    """Returns the variance of a tree counter's estimates at epsilon = 1 (Laplace) or rho = 1 (Gaussian), sensitivity 1.

    The variance is exact, except that it leaves out the noise that covers rounding. For other values divide it by
    epsilon^2 or rho, and multiply it by the sensitivity squared.

    Args:
        times: [...] integers in 1..horizon, numbers of fed entries.
        horizon: >= 1.
        arity: >= 2.
        noise: "laplace" or "gaussian".
        combine: as for `tree_counter`.

    Returns:
        [...] float64.

    Raises:
        ValueError: if an argument is out of its range.

    Source:
        Dwork, Naor, Pitassi & Rothblum (2010); Chan, Shi & Song (2011); Honaker (2015).

    Deviations:
        None.

    Examples:
        >>> times = np.arange(1, 2**10)
        >>> [float(tree_variance(times, horizon=2**10 - 1, arity=2, combine=c).mean().round()) for c in (False, True)]
        [1001.0, 581.0]
    """
    horizon, arity = check_horizon(horizon, spare=1), check_arity(arity)
    levels = num_digits(horizon, arity)
    digits = digits_of(check_times(times, horizon), arity, levels)
    return _node_variance(noise, levels) * (digits @ level_variances(arity, levels, combine))


def best_arity(horizon: int, *, noise: str = "laplace", combine: bool = True, objective: str = "mean") -> int:
    """Returns the arity of the tree with the least variance over the times 1..horizon, from the exact formula.

    Args:
        horizon: >= 1.
        noise: "laplace" or "gaussian".
        combine: as for `tree_counter`.
        objective: "mean" or "max" of the variance over the times 1..horizon.

    Returns:
        An arity in 2..1000; if several are equally good, the smallest.

    Raises:
        ValueError: if an argument is out of its range.

    Source:
        Qardaji, Yang & Li (2013) for the asymptotics; the mean variance of each arity is summed digit by digit.

    Deviations:
        None.

    Examples:
        >>> best_arity(2**20 - 1), best_arity(2**20 - 1, noise="gaussian")
        (16, 2)
    """
    horizon = check_horizon(horizon, spare=1)
    check_choice("objective", objective, OBJECTIVES)

    def cost(arity: int) -> float:
        levels = num_digits(horizon, arity)
        variances = level_variances(arity, levels, combine)
        summary = mean_digits(horizon, arity) @ variances if objective == "mean" else _max(horizon, arity, variances)
        return _node_variance(noise, levels) * float(summary)

    return min(range(2, max(2, min(horizon + 1, LARGEST)) + 1), key=cost)


def mean_digits(horizon: int, arity: int) -> np.ndarray:
    """Returns the mean of each digit ([levels] float) over the times 1..horizon."""
    numbers, means = horizon + 1, []
    for h in range(num_digits(horizon, arity)):
        cycles, remainder = divmod(numbers, arity ** (h + 1))
        top, last = divmod(remainder, arity**h)
        total = cycles * arity**h * (arity * (arity - 1) // 2) + arity**h * (top * (top - 1) // 2) + last * top
        means.append(total / horizon)
    return np.asarray(means)


def _max(horizon: int, arity: int, variances: np.ndarray) -> float:
    """Returns the largest variance over the times 1..horizon, given the variances of the levels."""
    # The largest variance is attained at the horizon, or at a time with one of the horizon's digits lowered by 1 and
    # all lower digits at their maximum.
    digits = digits_of(np.asarray(horizon), arity, len(variances))
    worst = float(digits @ variances)
    for h in range(len(variances)):
        if digits[h]:
            lower = digits.copy()
            lower[h], lower[:h] = digits[h] - 1, arity - 1
            worst = max(worst, float(lower @ variances))
    return worst


def _node_variance(noise: str, levels: int) -> float:
    return 2.0 * levels**2 if check_choice("noise", noise, NOISES) == "laplace" else levels / 2

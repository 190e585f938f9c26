"""Checks, on the host, that integers can represent Laplace noise of a given budget."""

import math

from jaxdp.mechanisms._grid import COARSEST, LARGEST_SCALE
from jaxdp.validation import check_epsilon

ROUNDING = 1.001  # a budget is rounded down to JAX's default float type


def check_laplace(epsilon: float, *, numbers: int = 1, times: float = 1.0) -> float:
    """Returns epsilon; raises a ValueError if Laplace noise of this budget would overflow integers.

    Without this check the traced release would be NaN.

    Args:
        epsilon: the budget.
        numbers: number of floats that are released together; more floats have finer steps.
        times: maximum noise scale of the releases, relative to sensitivity / epsilon.

    Examples:
        >>> check_laplace(1e-12)
        Traceback (most recent call last):
        ValueError: epsilon must be >= 1.46e-11, as larger noise would overflow integers, got 1e-12
    """
    check_epsilon(epsilon)
    # A sensitivity has at most 2 / COARSEST steps for one number, and rounding adds one step for each number.
    least = (2 / COARSEST * 2 ** math.ceil(math.log2(numbers)) + numbers) / LARGEST_SCALE * times * ROUNDING
    if epsilon < least:
        raise ValueError(f"epsilon must be >= {least:.3g}, as larger noise would overflow integers, got {epsilon:g}")
    return epsilon

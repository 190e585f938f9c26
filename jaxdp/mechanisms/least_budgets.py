"""Checks, on the host, that integers can represent Laplace or K-norm noise of a given budget."""

import math

import jax

from jaxdp.mechanisms._arrays import Scalar
from jaxdp.mechanisms._grid import COARSEST, K_NORM_STEP, LARGEST_SCALE, Exact, is_integer, shape_of
from jaxdp.validation import check_epsilon

ROUNDING = 1.001  # a budget is rounded down to JAX's default float type


def check_laplace(epsilon: float, *, numbers: int = 1, times: float = 1.0, l1_sensitivity: float = 1.0) -> float:
    """Returns epsilon; raises a ValueError if Laplace noise of this budget would overflow integers.

    Without this check the traced release would be NaN.

    Args:
        epsilon: the budget.
        numbers: number of floats that are released together; more floats have finer steps.
        times: maximum noise scale of the releases, relative to sensitivity / epsilon.
        l1_sensitivity: L1 sensitivity of integers; beyond 2^11 it matters, because steps are at most 1.

    Examples:
        >>> check_laplace(1e-12)
        Traceback (most recent call last):
        ValueError: epsilon must be >= 1.46e-11, as larger noise would overflow integers, got 1e-12
    """
    check_epsilon(epsilon)
    # A sensitivity has at most 2 / COARSEST steps for one number, and rounding adds one step for each number.
    steps = max(2 / COARSEST * 2 ** math.ceil(math.log2(numbers)) + numbers, l1_sensitivity)
    return _check_steps(epsilon, steps * times)


def check_laplace_release(exact: Exact, epsilon: Scalar, l1_sensitivity: Scalar) -> None:
    """Checks the budget of a Laplace release of `exact` by `check_laplace`, unless epsilon is a JAX array."""
    if isinstance(epsilon, jax.Array):
        return
    if not is_integer(exact):
        check_laplace(float(epsilon), numbers=max(math.prod(shape_of(exact)), 1))
    else:
        is_known = not isinstance(l1_sensitivity, jax.Array)
        check_laplace(float(epsilon), l1_sensitivity=float(l1_sensitivity) if is_known else 1.0)


def check_k_norm(epsilon: float, *, numbers: int) -> float:
    """Returns epsilon; raises a ValueError if K-norm noise of this budget on `numbers` numbers would overflow integers.

    Examples:
        >>> check_k_norm(1e-12, numbers=1)
        Traceback (most recent call last):
        ValueError: epsilon must be >= 2.33e-10, as larger noise would overflow integers, got 1e-12
    """
    check_epsilon(epsilon)
    root = math.sqrt(numbers)
    return _check_steps(epsilon, 2 / K_NORM_STEP * root + root)


def _check_steps(epsilon: float, steps: float) -> float:
    """Returns epsilon; raises a ValueError if noise of the scale `steps` / epsilon would overflow integers."""
    least = steps / LARGEST_SCALE * ROUNDING
    if epsilon < least:
        raise ValueError(f"epsilon must be >= {least:.3g}, as larger noise would overflow integers, got {epsilon:g}")
    return epsilon

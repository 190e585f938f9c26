"""Conversions between (epsilon, delta) and zCDP's rho or Gaussian noise, in float64 on the host.

Except in `gaussian_delta`, results are rounded in the safe direction, by about 1e-12 times the terms of their formulas:
epsilon is rounded up and rho is rounded down.
"""

import math
from collections.abc import Callable

import numpy as np

from jaxdp.validation import check_above, check_at_least, check_delta, check_epsilon, check_finite

MARGIN = 1e-12  # relative; covers the rounding of the formulas below and the tolerance of the root finder
_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(20)


def gaussian_delta(epsilon: float, noise_stddev: float, l2_sensitivity: float = 1.0) -> float:
    """Returns the privacy profile of the Gaussian mechanism: the smallest delta at which it is (epsilon, delta)-DP.

    The value is exact up to float64 rounding (about 1e-12 relative); it may be rounded up or down.

    Args:
        epsilon: >= 0; infinity gives 0. At 0 the value is the total variation distance.
        noise_stddev: standard deviation of the noise, >= 0; at 0 the value is 1 for every finite epsilon.
        l2_sensitivity: L2 sensitivity of the released vector, > 0 and finite.

    Returns:
        delta in [0, 1]; 0 if it underflows.

    Raises:
        ValueError: if an argument is outside its range or NaN.

    Privacy:
        - Computes a guarantee, releases nothing.

    Source:
        Balle & Wang (2018), Theorem 8.

    Deviations:
        None in value. The formula avoids the difference in Theorem 8, which cancels (see `log_delta_of`).

    Examples:
        >>> f"{gaussian_delta(8.0, math.sqrt(2 * math.log(1250)) / 8):.6f}"  # the classical noise for (8, 1e-3)
        '0.001313'
    """
    epsilon = check_at_least("epsilon", epsilon, 0.0)
    ratio = check_at_least("noise_stddev", noise_stddev, 0.0) / check_sensitivity(l2_sensitivity)
    if epsilon == math.inf or ratio == math.inf:
        return 0.0
    return 1.0 if ratio == 0 else math.exp(log_delta_of(epsilon, ratio))


def gaussian_epsilon(delta: float, noise_stddev: float, l2_sensitivity: float = 1.0) -> float:
    """Returns the smallest epsilon at which the Gaussian mechanism is (epsilon, delta)-DP; inverts `gaussian_delta`.

    Args:
        delta: in (0, 1).
        noise_stddev: standard deviation of the noise, >= 0; at 0 epsilon is infinite.
        l2_sensitivity: L2 sensitivity of the released vector, > 0 and finite.

    Returns:
        epsilon in [0, inf], rounded up by less than 1e-11 * (epsilon + r + r^2), where r = l2_sensitivity /
        noise_stddev. It is 0 if the total variation distance is at most delta.

    Raises:
        ValueError: if an argument is outside its range or NaN.

    Privacy:
        - Computes a guarantee, releases nothing.

    Source:
        Balle & Wang (2018), Theorem 8.

    Deviations:
        None.

    Examples:
        >>> f"{gaussian_epsilon(1e-5, noise_stddev=1.0):.4f}"
        '4.3772'
    """
    delta = check_delta(delta)
    ratio = check_at_least("noise_stddev", noise_stddev, 0.0) / check_sensitivity(l2_sensitivity)
    if ratio == 0:
        return math.inf
    log_delta, spread = math.log(delta), 1 / ratio + 1 / ratio / ratio
    if ratio == math.inf or log_delta_of(0.0, ratio) <= log_delta:
        return 0.0
    if spread == math.inf:
        return math.inf

    def excess(log_epsilon: float) -> float:
        return log_delta_of(math.exp(log_epsilon), ratio) - log_delta

    epsilon = math.exp(root(excess, math.log(spread)))
    return epsilon + MARGIN * (epsilon + spread)


def zcdp_epsilon(rho: float, delta: float) -> float:
    """Returns an epsilon such that rho-zCDP implies (epsilon, delta)-DP.

    Args:
        rho: zCDP budget, > 0; infinity gives infinity.
        delta: in (0, 1).

    Returns:
        epsilon in [0, inf]: the infimum over Rényi orders, rounded up by 1e-12 times the sum of its positive terms.

    Raises:
        ValueError: if an argument is outside its range or NaN.

    Privacy:
        - Computes a guarantee, releases nothing.
        - Holds for every rho-zCDP mechanism. For the Gaussian mechanism `gaussian_epsilon` is exact and smaller.

    Source:
        Canonne, Kamath & Steinke (2020), Corollary 13.

    Deviations:
        None. With b = order - 1 the objective's derivative is rho - (ln(1/delta) - ln(1+b)) / b^2, which changes sign
        once. Any b gives a valid epsilon, so an inexact b costs accuracy, never privacy.
    """
    rho, delta = check_above("rho", rho, 0.0), check_delta(delta)
    if rho == math.inf:
        return math.inf
    log_inverse = -math.log(delta)

    def slope(log_b: float) -> float:
        b = math.exp(log_b)
        return log_inverse - math.log1p(b) - rho * b * b

    b = math.exp(root(slope, math.log(log_inverse / rho) / 2))
    cost, tail, gain = (1 + b) * rho, (log_inverse - math.log1p(b)) / b, math.log1p(1 / b)
    return max(0.0, cost + tail - gain + MARGIN * (cost + tail))


def zcdp_rho(epsilon: float, delta: float) -> float:
    """Returns the largest rho such that rho-zCDP implies (epsilon, delta)-DP by the bound of `zcdp_epsilon`.

    Args:
        epsilon: > 0; infinity gives infinity.
        delta: in (0, 1).

    Returns:
        rho in (0, inf], rounded down by 1e-12 relative. As `zcdp_epsilon` is rounded up, it may exceed `epsilon` at
        this rho, by about 1e-12 times the larger of 1 and epsilon.

    Raises:
        ValueError: if an argument is outside its range or NaN, or rho would be below the range of float64.

    Privacy:
        - Computes a guarantee, releases nothing.

    Source:
        Canonne, Kamath & Steinke (2020), Corollary 13.

    Deviations:
        None. At the optimal order (see `zcdp_epsilon`) rho and epsilon both decrease in b, so one search for a root in
        b gives rho.

    Examples:
        >>> f"{zcdp_rho(1.0, 1e-6):.4f}"
        '0.0244'
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    if epsilon == math.inf:
        return math.inf
    log_inverse = -math.log(delta)

    def excess(log_b: float) -> float:
        b = math.exp(log_b)
        return (log_inverse - math.log1p(b)) / b * (2 + 1 / b) - math.log1p(1 / b) - epsilon

    b = math.exp(root(excess, math.log(log_inverse) - math.log1p(epsilon) / 2))
    rho = (epsilon - (log_inverse - math.log1p(b)) / b + math.log1p(1 / b)) / (1 + b)
    if not rho >= np.finfo(float).smallest_normal:
        raise ValueError(f"epsilon must be larger, as rho is below the range of float64, got {epsilon} (delta {delta})")
    return rho * (1 - MARGIN)


def check_sensitivity(l2_sensitivity: float) -> float:
    """Returns the sensitivity as a float, after checking that it is finite and > 0."""
    return check_above("l2_sensitivity", float(check_finite("l2_sensitivity", l2_sensitivity)), 0.0)


def log_delta_of(epsilon: float, ratio: float) -> float:
    """Returns the logarithm of the Gaussian mechanism's delta at epsilon >= 0.

    The ratio, noise_stddev / l2_sensitivity, is finite and > 0. With u and v as in the code, delta = Phi(-u) -
    e^epsilon * Phi(-v) (Balle & Wang, 2018, Theorem 8). The function computes delta as phi(u) * (R(u) - R(v)), where
    R(x) = Phi(-x) / phi(x) is the Mills ratio. This form does not overflow. The derivative of R is R'(x) = x * R(x) -
    1.
    """
    from scipy.special import ndtr  # imported here to keep `import jaxdp` fast

    u, v = epsilon * ratio - 1 / (2 * ratio), epsilon * ratio + 1 / (2 * ratio)
    if ratio >= 1:  # v - u = 1 / ratio is small and R(u) - R(v) would cancel: integrate -R' over [u, v] instead
        x = u + (_NODES + 1) / (2 * ratio)
        difference = float(_WEIGHTS @ (1 - x * _mills(x))) / (2 * ratio)
    elif u >= 0:
        difference = _mills(u) - _mills(v)
    else:  # delta may be near 1, so it is computed from 1 - delta
        return math.log1p(-(float(ndtr(u)) + math.exp(-u * u / 2) / math.sqrt(2 * math.pi) * _mills(v)))
    return -u * u / 2 - math.log(2 * math.pi) / 2 + math.log(difference) if difference > 0 else -math.inf


def _mills(x):
    from scipy.special import erfcx

    return math.sqrt(math.pi / 2) * erfcx(x / math.sqrt(2))


def root(decreasing: Callable[[float], float], start: float) -> float:
    """Returns the root of a decreasing function; steps of doubling size from `start` bracket the root.

    The root is sought in [-700, 700]. The result is -700 if the root is smaller, and infinity if it is larger.
    """
    low = high = start
    step = 1.0
    while decreasing(low) < 0 and low > -700:  # e^700 is finite
        low, step = max(low - step, -700.0), 2 * step
    step = 1.0
    while decreasing(high) > 0 and high < 700:
        high, step = min(high + step, 700.0), 2 * step
    if decreasing(high) > 0:
        return math.inf
    if decreasing(low) < 0:
        return low
    from scipy.optimize import root_scalar

    return root_scalar(decreasing, bracket=(low, high), xtol=1e-14, rtol=4 * np.finfo(float).eps).root

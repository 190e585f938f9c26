"""Calibrates Gaussian noise, and computes the budget that a given noise spends, in float64 on the host.

Results of `analytic_gaussian`, `gaussian_epsilon` and `zcdp_epsilon` are rounded up, and results of `zcdp_rho` are
rounded down, by about 1e-12. `zcdp_gaussian` rounds up to float64. `gaussian_delta` and `classical_gaussian` round to
either side. If a noise scale is cast, `round_up` keeps it on the safe side.
"""

import math
from fractions import Fraction

import jax.numpy as jnp
import numpy as np
from jax.typing import DTypeLike

from jaxdp.core.conversions import (
    MARGIN,
    check_sensitivity,
    gaussian_delta,
    gaussian_epsilon,
    log_delta_of,
    root,
    zcdp_epsilon,
    zcdp_rho,
)
from jaxdp.validation import check_above, check_at_least, check_delta, check_epsilon

__all__ = [
    "analytic_gaussian",
    "classical_gaussian",
    "gaussian_delta",
    "gaussian_epsilon",
    "round_up",
    "zcdp_epsilon",
    "zcdp_gaussian",
    "zcdp_rho",
]


def analytic_gaussian(epsilon: float, delta: float, l2_sensitivity: float = 1.0) -> float:
    """Returns the smallest standard deviation with which the Gaussian mechanism is (epsilon, delta)-DP.

    Args:
        epsilon: > 0; infinity (no privacy) gives 0.0.
        delta: in (0, 1).
        l2_sensitivity: L2 sensitivity of the released vector, > 0 and finite.

    Returns:
        The noise's standard deviation per coordinate, >= 0, rounded up by a relative 1e-12.

    Raises:
        ValueError: if an argument is outside its range or NaN, or the noise would exceed float64.

    Privacy:
        - (epsilon, delta)-DP for one release of a vector of this sensitivity with independent noise in each coordinate
          (`gaussian`), under the adjacency and for the unit that the sensitivity refers to.

    Source:
        Balle & Wang (2018), Theorem 8 and Algorithm 1.

    Deviations:
        One root search on log delta replaces the two searches of Algorithm 1.

    Examples:
        >>> f"{analytic_gaussian(1.0, 1e-5):.3f}"
        '3.731'
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    l2_sensitivity = check_sensitivity(l2_sensitivity)
    if epsilon == math.inf:
        return 0.0
    log_delta = math.log(delta)
    # at ratio 1 / sqrt(2 epsilon) the mean privacy loss is epsilon, so delta is of order 1
    log_ratio = root(lambda x: log_delta_of(epsilon, math.exp(x)) - log_delta, -math.log(2 * min(epsilon, 1e300)) / 2)
    stddev = l2_sensitivity * math.exp(log_ratio) * (1 + MARGIN)
    if stddev == math.inf:
        raise ValueError(f"epsilon must be larger, as the noise exceeds float64, got {epsilon} (delta {delta})")
    return stddev


def classical_gaussian(epsilon: float, delta: float, l2_sensitivity: float = 1.0) -> float:
    """Returns the textbook standard deviation l2_sensitivity * sqrt(2 ln(1.25 / delta)) / epsilon, as used in papers.

    `analytic_gaussian` needs less noise at every epsilon < 1, and is valid at every epsilon.

    Args:
        epsilon: in (0, 1), or infinity, which gives 0.0.
        delta: in (0, 1).
        l2_sensitivity: L2 sensitivity of the released vector, > 0 and finite.

    Returns:
        The noise's standard deviation per coordinate, >= 0; infinity if it exceeds float64.

    Raises:
        ValueError: if an argument is outside its range or NaN. In particular finite epsilon >= 1 is rejected: the
            formula is proven only below 1, and is false for large epsilon (at epsilon=8 and delta=1e-3 its noise spends
            delta=1.31e-3).

    Privacy:
        - (epsilon, delta)-DP, as for `analytic_gaussian`.
        - Slack: the noise spends only `gaussian_epsilon(delta, noise_stddev, l2_sensitivity)`: 0.37, 0.55 and 0.62 of
          epsilon at epsilon = 0.1, 0.5 and 0.9 and delta = 1e-3. The proof of the source's theorem bounds the
          probability of a loss above epsilon by delta. It would suffice to bound this probability minus exp(epsilon)
          times the probability of the same event under the other input.

    Source:
        Dwork & Roth (2014), Theorem 3.22 (A.1).

    Deviations:
        None.
    """
    epsilon, delta = check_epsilon(epsilon), check_delta(delta)
    l2_sensitivity = check_sensitivity(l2_sensitivity)
    if 1 <= epsilon < math.inf:
        raise ValueError(
            f"epsilon must be < 1 (or inf) for the classical formula, got {epsilon}: it is proved only below 1, and at "
            "epsilon=8, delta=1e-3 its noise spends delta=1.31e-3; use analytic_gaussian"
        )
    return l2_sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon


def zcdp_gaussian(rho: float, l2_sensitivity: float = 1.0) -> float:
    """Returns the smallest stddev with which the Gaussian mechanism is rho-zCDP: l2_sensitivity / sqrt(2 rho).

    Args:
        rho: zCDP budget, > 0; infinity (no privacy) gives 0.0.
        l2_sensitivity: L2 sensitivity of the released vector, > 0 and finite.

    Returns:
        The noise's standard deviation per coordinate, >= 0: the smallest float64 that gives rho-zCDP, or the next
        larger float64. Infinity if it exceeds float64.

    Raises:
        ValueError: if an argument is outside its range or NaN.

    Privacy:
        - rho-zCDP for one release of a vector of this sensitivity with independent noise in each coordinate
          (`gaussian`), under the adjacency and for the unit that the sensitivity refers to.

    Source:
        Bun & Steinke (2016), Proposition 1.6.

    Deviations:
        None.

    Examples:
        >>> zcdp_gaussian(0.5)
        1.0
    """
    rho, l2_sensitivity = check_above("rho", rho, 0.0), check_sensitivity(l2_sensitivity)
    if rho == math.inf:
        return 0.0
    # 2 * rho may overflow, and rho / 2 may underflow; both forms give the same root
    noise_stddev = l2_sensitivity / (2 * math.sqrt(rho / 2) if rho > 1 else math.sqrt(2 * rho))
    while noise_stddev < math.inf and 2 * Fraction(rho) * Fraction(noise_stddev) ** 2 < Fraction(l2_sensitivity) ** 2:
        noise_stddev = math.nextafter(noise_stddev, math.inf)
    return noise_stddev


def round_up(value: float, dtype: DTypeLike = np.float32) -> np.floating:
    """Casts a noise scale to a dtype, and never rounds it down.

    Args:
        value: a noise scale in [0, inf].
        dtype: a floating dtype.

    Returns:
        The smallest number of this dtype that is >= value, among 0 and the normal numbers, since XLA may treat
        subnormal numbers as 0.

    Raises:
        ValueError: if value is negative or NaN, or is finite and larger than every finite number of this dtype.

    Examples:
        >>> float(round_up(0.1)) >= 0.1, float(np.float32(0.7)) >= 0.7, float(round_up(0.7)) >= 0.7
        (True, False, True)
    """
    value, limits = check_at_least("value", value, 0.0), jnp.finfo(dtype)
    if float(limits.max) < value < math.inf:
        raise ValueError(f"value must be <= {float(limits.max):g}, the largest {limits.dtype}, got {value}")
    cast = limits.dtype.type(value)
    if float(cast) < value:
        cast = np.nextafter(cast, limits.dtype.type(math.inf))
    return limits.smallest_normal if 0 < value < float(limits.smallest_normal) else cast

"""Rates of bits and their reports, relative entropies, and lower bounds on the number of users.

A rate is the probability of a 1.
"""

import math

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import expit, logit


def report_rate(rate: float, epsilon: float) -> float:
    """Returns the probability that a randomized-response report is 1 if the bit is 1 with probability `rate`."""
    return 0.5 + (rate - 0.5) * math.tanh(epsilon / 2)


def log_odds_ratio(first: float, second: float) -> float:
    """Returns the log odds of the second rate minus the log odds of the first rate."""
    return float(logit(second) - logit(first))


def relative_entropy(first: float, second: float) -> float:
    """Returns the Kullback-Leibler divergence KL(Bernoulli(first) || Bernoulli(second)), in nats."""
    # For close rates the plain formula would lose all digits; `log1p` of the small differences is accurate.
    ones = first * math.log1p((first - second) / second)
    return ones + (1 - first) * math.log1p((second - first) / (1 - second))


def private_divergence(first: float, second: float, epsilon: float) -> float:
    """Returns the minimum over rates z of relative_entropy(z, second) + epsilon |first - z|.

    This divergence replaces the relative entropy in bounds on the number of users under central epsilon-DP.

    Source:
        Jourdan & Azize (2025), "Optimal best arm identification under differential privacy", arXiv 2510.17348.
    """
    stationary = float(expit(logit(second) + math.copysign(epsilon, first - second)))  # slopes of both terms cancel
    minimiser = min(max(stationary, min(first, second)), max(first, second))
    return relative_entropy(minimiser, second) + (epsilon * abs(first - minimiser) if minimiser != first else 0.0)


def lower_bound(control: float, treatment: float, failure_prob: float, epsilon: float = math.inf) -> float:
    """Returns a lower bound on the expected total number of users that a test needs at these rates.

    The bound holds for tests that use both arms equally often and stop only when they declare the arms different. They
    must stop with probability 1 if the rates differ, and with probability at most `failure_prob` if the rates are
    equal. If epsilon is finite, the stopping time must also depend only on the curator's releases, which must be
    epsilon-DP together.

    Args:
        control: the control arm's rate, of bits or of reports, in (0, 1).
        treatment: the treatment arm's rate, in (0, 1); different from `control`.
        failure_prob: maximum probability of declaring equal arms different.
        epsilon: the curator's budget, > 0; infinity if the test reads the bits (or reports) themselves.
    """
    low, high = min(control, treatment), max(control, treatment)

    def information(rate: float) -> float:
        return sum(private_divergence(arm, rate, epsilon) for arm in (low, high))

    minimum = minimize_scalar(information, bounds=(low, high), method="bounded", options={"xatol": 1e-9 * (high - low)})
    return 2 * math.log(1 / failure_prob) / float(minimum.fun)  # pyright: ignore[reportAttributeAccessIssue]


def log_cosh(values: np.ndarray | float) -> np.ndarray:
    """Returns log cosh, with full relative precision for small values and without overflow for large values."""
    size = np.abs(values)
    small = np.log1p(2 * np.sinh(np.minimum(size, 1.0) / 2) ** 2)
    return np.where(size < 1, small, size + np.log1p(np.exp(-2 * size)) - math.log(2))

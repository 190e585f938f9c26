"""Computes exact privacy budgets of two discrete distributions, and tests whether a sampler follows a distribution.

A distribution is a mapping from each possible outcome to its probability under one input.
"""

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import chdtrc, ndtri, xlogy

from jaxdp.audit.checks import native
from jaxdp.core import Guarantee
from jaxdp.validation import check_at_least

OutputDistribution = Mapping[Any, float]

TOLERANCE = 1e-6  # allowed error of a sum of probabilities, which may come from quadrature
FEWEST_EXPECTED = 5.0  # rarer outcomes are counted together, so that the chi-squared limit holds
COARSE, FINE, PARTS = 1 / 16, 1e-5, 8  # widths of intervals of Rényi orders, and parts of a divided interval
ALL, MOST = 1e-3, 512  # at most MOST intervals narrower than ALL are searched
LARGEST_ORDER = 1e300
TOGETHER = 2**20  # maximum number of terms of divergences that are in memory at once


def exact_delta(first: OutputDistribution, second: OutputDistribution, epsilon: float) -> float:
    """Returns the smallest delta at which two distributions are (epsilon, delta)-indistinguishable, in both directions.

    Args:
        first: distribution under one input.
        second: distribution under a neighbouring input.
        epsilon: >= 0; at infinity delta is the larger mass, under one input, of outcomes impossible under the other.

    Returns:
        delta in [0, 1]: the larger hockey-stick divergence, sum over outcomes of max(0, p - exp(epsilon) q).

    Raises:
        ValueError: if epsilon is not >= 0, or a distribution has a negative probability or does not sum to 1 (within
            1e-6).

    Source:
        Barthe & Olmedo (2013).

    Examples:
        >>> exact_delta({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, epsilon=0.0)
        0.5
    """
    epsilon = check_at_least("epsilon", epsilon, 0.0)
    p, q = _align(first, second)
    return min(1.0, max(_hockey_stick(p, q, epsilon), _hockey_stick(q, p, epsilon)))


def exact_epsilon(first: OutputDistribution, second: OutputDistribution, delta: float = 0.0) -> float:
    """Returns the smallest epsilon at which two distributions are (epsilon, delta)-indistinguishable, both directions.

    An event counts only if its probability exceeds delta by more than n 2^-52 delta, since sums of n probabilities are
    rounded. An event with probability delta does not count.

    Args:
        first: distribution under one input.
        second: distribution under a neighbouring input.
        delta: in [0, 1).

    Returns:
        epsilon in [0, inf].

    Raises:
        ValueError: if delta is outside [0, 1), or a distribution has a negative probability or does not sum to 1
            (within 1e-6).

    Source:
        The most powerful events are {p / q > t} (Neyman-Pearson), so that epsilon is the largest log((p(E) - delta) /
        q(E)) over these events.

    Examples:
        >>> round(exact_epsilon({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}), 6) == round(math.log(3), 6)
        True
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    p, q = _align(first, second)
    return max(0.0, _log_ratio(p, q, delta), _log_ratio(q, p, delta))


def exact_mu(first: OutputDistribution, second: OutputDistribution) -> float:
    """Returns the smallest mu at which two distributions are no easier to distinguish than N(0, 1) and N(mu, 1).

    Args:
        first: distribution under one input.
        second: distribution under a neighbouring input.

    Returns:
        mu of Gaussian DP, in [0, inf].

    Raises:
        ValueError: if a distribution has a negative probability or does not sum to 1 (within 1e-6).

    Source:
        Dong, Roth & Su (2022), Definition 2.6. Between the most powerful events {p / q > t} (Neyman-Pearson) the
        trade-off of errors is linear, while the trade-off of two normal distributions is convex. So the comparison at
        these events decides. An event and its complement give the same comparison, so one direction suffices.

    Examples:
        >>> round(exact_mu({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}), 6)
        1.34898
    """
    p, q = _possible(first, second)
    with np.errstate(divide="ignore"):
        order = np.argsort(np.log(q) - np.log(p), kind="stable")
    likely, unlikely = (_quantiles(distribution[order]) for distribution in (p, q))
    return max(0.0, float(np.max(likely - unlikely, initial=0.0)))


def exact_rho(first: OutputDistribution, second: OutputDistribution) -> float:
    """Returns the smallest rho at which two distributions are rho-zCDP: the largest D_a / a over a > 1, both ways.

    Args:
        first: distribution under one input.
        second: distribution under a neighbouring input.

    Returns:
        rho in [0, inf], never too large except for rounding. Its relative error is less than 1e-6 by proof, and usually
        less than 1e-9; it may exceed 1e-9 only if orders far apart have nearly the same value of D_a / a. The result is
        infinite if an outcome is possible under only one input. Orders above 1e300 are not searched.

    Raises:
        ValueError: if a distribution has a negative probability or does not sum to 1 (within 1e-6).

    Source:
        Bun & Steinke (2016), Definition 1.1.

    Examples:
        >>> round(exact_rho({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}), 6)
        0.549306
    """
    p, q = _possible(first, second)
    if np.any((p > 0) != (q > 0)):
        return math.inf
    return max(_zcdp_rho(p, q), _zcdp_rho(q, p))


def exact_budget(first: OutputDistribution, second: OutputDistribution, guarantee: Guarantee) -> float:
    """Returns the exact rho, mu, or epsilon at the claimed delta of two distributions, whichever the claim states."""
    currency, _, delta = native(guarantee)
    if currency == "rho":
        return exact_rho(first, second)
    return exact_mu(first, second) if currency == "mu" else exact_epsilon(first, second, delta)


def g_test(samples: Iterable[Hashable], distribution: OutputDistribution) -> float:
    """Returns the p-value of a G test of samples against a distribution.

    Args:
        samples: independent outcomes.
        distribution: the distribution that they should follow. Outcomes with expected counts below 5 are merged into
            one.

    Returns:
        p-value in [0, 1]; 0 if a sample is impossible under the distribution, else 1 if merging leaves one outcome.

    Raises:
        ValueError: if there are no samples, a sample is not hashable (convert a vector to a tuple), or the distribution
            has a negative probability or does not sum to 1 (within 1e-6).

    Source:
        Sokal & Rohlf (1981); the statistic 2 sum O log(O / E) is asymptotically chi-squared.
    """
    counts: dict[Hashable, int] = {}
    for sample in samples:
        try:
            counts[sample] = counts.get(sample, 0) + 1
        except TypeError as error:
            raise ValueError(f"samples must be hashable, such as tuples, got a {type(sample).__name__}") from error
    total = sum(counts.values())
    if total == 0:
        raise ValueError("samples must not be empty")
    _check_distribution("distribution", distribution)
    if any(distribution.get(outcome, 0.0) == 0 for outcome in counts):
        return 0.0
    expected = np.array([total * p for p in distribution.values()])
    observed = np.array([counts.get(outcome, 0) for outcome in distribution], np.float64)
    rare = expected < FEWEST_EXPECTED
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    is_possible = expected > 0
    expected, observed = expected[is_possible], observed[is_possible]
    if len(expected) == 1:
        return 1.0
    statistic = 2 * float(np.sum(xlogy(observed, observed / expected)))
    return float(chdtrc(len(expected) - 1, max(0.0, statistic)))


def _check_distribution(name: str, distribution: OutputDistribution) -> None:
    if not isinstance(distribution, Mapping):
        raise ValueError(f"{name} must be a mapping from outcomes to probabilities, got {type(distribution).__name__}")
    for outcome, probability in distribution.items():
        if not 0 <= probability <= 1 + TOLERANCE:
            raise ValueError(f"{name} must have probabilities in [0, 1], got {probability} for {outcome!r}")
    total = math.fsum(distribution.values())
    if not abs(total - 1) <= TOLERANCE:
        raise ValueError(f"{name} must sum to 1, got {total}")


def _align(first: OutputDistribution, second: OutputDistribution) -> tuple[np.ndarray, np.ndarray]:
    _check_distribution("first", first)
    _check_distribution("second", second)
    outcomes = {**dict.fromkeys(first), **dict.fromkeys(second)}
    return tuple(np.array([distribution.get(outcome, 0.0) for outcome in outcomes]) for distribution in (first, second))  # pyright: ignore[reportReturnType]


def _possible(first: OutputDistribution, second: OutputDistribution) -> tuple[np.ndarray, np.ndarray]:
    p, q = _align(first, second)
    return p[(p > 0) | (q > 0)], q[(p > 0) | (q > 0)]


def _hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    possible = q > 0  # elsewhere infinity times 0 would be NaN
    with np.errstate(over="ignore"):
        half = np.exp(epsilon / 2)  # exp(epsilon) would overflow; if half does, exp(epsilon) q > 1 for every float q
        return float(p[~possible].sum() + np.maximum(0.0, p[possible] - half * q[possible] * half).sum())


def _log_ratio(p: np.ndarray, q: np.ndarray, delta: float) -> float:
    p, q = p[p > 0], q[p > 0]
    with np.errstate(divide="ignore"):
        order = np.argsort(-(np.log(p) - np.log(q)), kind="stable")
        likely, unlikely = np.cumsum(p[order]) - delta, np.cumsum(q[order])
        above = likely > len(p) * np.finfo(np.float64).eps * delta
        return float(np.max(np.log(likely[above]) - np.log(unlikely[above]), initial=-math.inf))


def _quantiles(distribution: np.ndarray) -> np.ndarray:
    """Returns normal quantiles of the cumulative probabilities, without the last one."""
    below, above = np.cumsum(distribution)[:-1], np.cumsum(distribution[::-1])[-2::-1]
    return np.where(below < above, ndtri(np.minimum(below, 0.5)), -ndtri(np.minimum(above, 0.5)))


def _zcdp_rho(p: np.ndarray, q: np.ndarray) -> float:
    """Returns the largest D_a / a over orders a > 1, for distributions with only positive probabilities."""
    # Orders are written a = cosh(t / 2)^2. (a - 1) D_a is convex in a, so it lies above its tangent at the order where
    # D_a / a is largest. Therefore, in an interval of t of width w, D_a / a at the upper end is below its largest value
    # by at most 4 sinh(w / 2)^2 times this value. Intervals that may contain the maximum are divided until this factor
    # is below 1e-9, or below 1e-6 if there are too many. D_a is at most the largest log ratio, which bounds the orders.
    ratios = np.log1p((p - q) / q) if np.all(np.abs(p - q) <= q / 2) else np.log(p) - np.log(q)
    best, ceiling = float(_rates(np.zeros(1), p, q, ratios)[0]), float(ratios.max())
    if not best > 0:
        return 0.0
    last = 2 * math.acosh(math.sqrt(max(1.0, min(ceiling / best, LARGEST_ORDER))))
    width = COARSE
    ends = width * np.arange(1, math.ceil(last / width) + 1)
    while len(ends):
        rates = _rates(np.square(np.sinh(ends / 2)), p, q, ratios)
        best = max(best, float(rates.max()))
        if width < FINE:
            break
        candidates = rates > best * (1 - 4 * math.sinh(width / 2) ** 2)
        if width < ALL and candidates.sum() > MOST:
            candidates = np.argsort(-rates)[:MOST]
        ends = ends[candidates]
        width /= PARTS
        ends = (ends[:, None] - width * np.arange(PARTS)).ravel()
    return best


def _rates(above: np.ndarray, p: np.ndarray, q: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    """Returns D_a / a for the orders a = 1 + above [n], part by part to save memory."""
    size = max(1, TOGETHER // len(p))
    parts = [_rate(above[i : i + size, None], p, q, ratios) for i in range(0, len(above), size)]
    return np.concatenate(parts)


def _rate(above: np.ndarray, p: np.ndarray, q: np.ndarray, ratios: np.ndarray) -> np.ndarray:
    # With s = a - 1, D_a = log(1 + s G) / s, where G is the sum of p * (exp(s log(p / q)) - 1) / s + q - p. The parts
    # q - p sum to 0 and make every term of G >= 0, so that nothing cancels if the distributions are close.
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        powers = above * ratios
        tilted = np.where(above > 0, np.expm1(powers) / above, ratios)
        gain = np.sum(p * tilted + (q - p), axis=1)
        close = np.where(above[:, 0] > 0, np.log1p(above[:, 0] * gain) / above[:, 0], gain)
        terms = np.log(p) + powers
        largest = terms.max(axis=1)
        far = (largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1))) / np.maximum(above[:, 0], math.ulp(0.0))
    return np.where(powers.max(axis=1) > 1, far, close) / (1 + above[:, 0])

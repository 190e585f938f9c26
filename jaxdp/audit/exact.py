"""Privacy of small discrete problems, exactly; and whether a sampler draws from its law.

A law is a mapping from each possible transcript to its probability under one input.
"""

import math
from collections.abc import Hashable, Iterable, Mapping
from typing import Any

import numpy as np
from scipy.special import chdtrc, xlogy

from jaxdp.validation import check_at_least

Law = Mapping[Any, float]

TOLERANCE = 1e-6  # on the sum of a law: laws by quadrature are not exact
FEWEST_EXPECTED = 5.0  # outcomes expected less often are counted together, as the chi-squared limit needs


def exact_delta(first: Law, second: Law, epsilon: float) -> float:
    """The smallest delta at which two laws are (epsilon, delta)-indistinguishable, in both directions.

    >>> exact_delta({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}, epsilon=0.0)
    0.5

    Args:
        first: under one input.
        second: under a neighbouring input.
        epsilon: >= 0; infinity gives the mass of what one input alone makes possible.

    Returns:
        delta in [0, 1]: the larger hockey-stick divergence, sum over outcomes of max(0, p - exp(epsilon) q).

    Raises:
        ValueError: if epsilon is not >= 0, or a law has a negative probability or does not sum to 1.

    Source: Barthe & Olmedo (2013).
    """
    epsilon = check_at_least("epsilon", epsilon, 0.0)
    p, q = _aligned(first, second)
    return min(1.0, max(_hockey_stick(p, q, epsilon), _hockey_stick(q, p, epsilon)))


def exact_epsilon(first: Law, second: Law, delta: float = 0.0) -> float:
    """The smallest epsilon at which two laws are (epsilon, delta)-indistinguishable, in both directions.

    Sums of probabilities are rounded: an event counts only if its probability exceeds delta by more than the relative
    2^-52 for each outcome. So what has exactly the mass delta is not taken for more. At delta = 0 nothing is forgiven.

    >>> round(exact_epsilon({0: 0.75, 1: 0.25}, {0: 0.25, 1: 0.75}), 6) == round(math.log(3), 6)
    True

    Args:
        first: under one input.
        second: under a neighbouring input.
        delta: in [0, 1).

    Returns:
        epsilon in [0, inf].

    Raises:
        ValueError: if delta is outside [0, 1), or a law has a negative probability or does not sum to 1.

    Source: the most telling events are {p / q > t} (Neyman-Pearson), so that epsilon is the largest
        log((p(E) - delta) / q(E)) over them.
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    p, q = _aligned(first, second)
    return max(0.0, _log_ratio(p, q, delta), _log_ratio(q, p, delta))


def g_test(samples: Iterable[Hashable], law: Law) -> float:
    """How surprising samples are under a law: the p-value of a G test.

    Args:
        samples: independent transcripts.
        law: that they should follow. Outcomes expected fewer than 5 times are counted together.

    Returns:
        p-value in [0, 1]; 0 where a sample is impossible under the law.

    Raises:
        ValueError: if there are no samples, one is not hashable (a vector must be made a tuple), or the law has a
            negative probability or does not sum to 1.

    Source: Sokal & Rohlf (1981); the statistic 2 sum O log(O / E) is asymptotically chi-squared.
    """
    counts: dict[Hashable, int] = {}
    for sample in samples:
        try:
            counts[sample] = counts.get(sample, 0) + 1
        except TypeError as error:
            raise ValueError(f"samples must be hashable, as tuples are, got a {type(sample).__name__}") from error
    total = sum(counts.values())
    if total == 0:
        raise ValueError("samples must not be empty")
    _check_law("law", law)
    if any(law.get(outcome, 0.0) == 0 for outcome in counts):
        return 0.0
    expected = np.array([total * p for p in law.values()])
    observed = np.array([counts.get(outcome, 0) for outcome in law], np.float64)
    rare = expected < FEWEST_EXPECTED
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    kept = expected > 0
    expected, observed = expected[kept], observed[kept]
    if len(expected) == 1:
        return 1.0
    statistic = 2 * float(np.sum(xlogy(observed, observed / expected)))
    return float(chdtrc(len(expected) - 1, max(0.0, statistic)))


def _check_law(name: str, law: Law) -> None:
    for outcome, probability in law.items():
        if not 0 <= probability <= 1 + TOLERANCE:
            raise ValueError(f"{name} must have probabilities in [0, 1], got {probability} for {outcome!r}")
    total = math.fsum(law.values())
    if not abs(total - 1) <= TOLERANCE:
        raise ValueError(f"{name} must sum to 1, got {total}")


def _aligned(first: Law, second: Law) -> tuple[np.ndarray, np.ndarray]:
    _check_law("first", first)
    _check_law("second", second)
    outcomes = {**dict.fromkeys(first), **dict.fromkeys(second)}
    return tuple(np.array([law.get(outcome, 0.0) for outcome in outcomes]) for law in (first, second))  # pyright: ignore[reportReturnType]


def _hockey_stick(p: np.ndarray, q: np.ndarray, epsilon: float) -> float:
    possible = q > 0  # elsewhere infinity times 0 would be NaN
    with np.errstate(over="ignore"):
        half = np.exp(epsilon / 2)  # in two halves: where both overflow, exp(epsilon) q > 1 for the smallest float q
        return float(p[~possible].sum() + np.maximum(0.0, p[possible] - half * q[possible] * half).sum())


def _log_ratio(p: np.ndarray, q: np.ndarray, delta: float) -> float:
    p, q = p[p > 0], q[p > 0]
    with np.errstate(divide="ignore"):
        order = np.argsort(-(np.log(p) - np.log(q)), kind="stable")
        likely, unlikely = np.cumsum(p[order]) - delta, np.cumsum(q[order])
        above = likely > len(p) * np.finfo(np.float64).eps * delta
        return float(np.max(np.log(likely[above]) - np.log(unlikely[above]), initial=-math.inf))

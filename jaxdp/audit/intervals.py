"""Computes exact confidence bounds on probabilities, and the epsilon or mu that they prove, in float64 on the host."""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betainccinv, betaincinv, ndtri

from jaxdp.validation import check_probability

DIRECTIONS = ("first over second", "second over first")


def clopper_pearson(counts: ArrayLike, trials: ArrayLike, *, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
    """Returns two-sided Clopper-Pearson intervals; each contains the true probability with the stated confidence.

    Args:
        counts: [...] integers in [0, trials], numbers of successes.
        trials: [...] integers >= 1, broadcast against counts.
        confidence: confidence of each interval, in (0, 1); each limit fails with probability at most
            (1 - confidence) / 2.

    Returns:
        (lower, upper), [...] float64 in [0, 1].

    Raises:
        ValueError: if a count is not an integer in [0, trials], trials are < 1, or confidence is outside (0, 1).

    Source:
        Clopper & Pearson (1934); the bounds are quantiles of beta distributions.

    Examples:
        >>> lower, upper = clopper_pearson([0, 5, 10], 10)
        >>> print(lower.round(4), upper.round(4))
        [0.     0.1871 0.6915] [0.3085 0.8129 1.    ]
    """
    error = (1 - check_probability("confidence", confidence)) / 2
    return lower_limit(counts, trials, error), upper_limit(counts, trials, error)


def lower_limit(counts: ArrayLike, trials: ArrayLike, error: ArrayLike) -> np.ndarray:
    """Returns lower bounds on probabilities; each exceeds the true probability with probability at most `error`.

    Args:
        counts: [...] integers in [0, trials].
        trials: [...] integers >= 1.
        error: [...] float in (0, 1).

    Returns:
        [...] float64 in [0, 1]; 0 where counts are 0.

    Raises:
        ValueError: if a count is not an integer in [0, trials], or trials are < 1.
    """
    successes, total = check_counts(counts, trials)
    return np.where(successes == 0, 0.0, betaincinv(np.maximum(successes, 1), total - successes + 1, error))


def upper_limit(counts: ArrayLike, trials: ArrayLike, error: ArrayLike) -> np.ndarray:
    """Returns upper bounds on probabilities; each is below the true probability with probability at most `error`.

    Args:
        counts: as for `lower_limit`.
        trials: as for `lower_limit`.
        error: as for `lower_limit`.

    Returns:
        [...] float64 in [0, 1]; 1 where counts equal trials.

    Raises:
        ValueError: as `lower_limit`.
    """
    successes, total = check_counts(counts, trials)
    failures = total - successes
    return np.where(failures == 0, 1.0, betainccinv(successes + 1, np.maximum(failures, 1), error))


class EpsilonBound(NamedTuple):
    """A lower bound on epsilon, and the event that proves it.

    Attributes:
        epsilon: lower bound on epsilon at the given delta, >= 0. If it is 0, event and direction have no meaning.
        event: index of the event in the flattened counts.
        direction: "first over second" if the event is likelier under the first input, else "second over first".
    """

    epsilon: float
    event: int
    direction: str


def epsilon_lower_bound(
    counts: ArrayLike,
    trials: int,
    other_counts: ArrayLike,
    other_trials: int,
    *,
    delta: float = 0.0,
    confidence: float = 0.95,
) -> EpsilonBound:
    """Returns a lower bound on epsilon at a claimed delta, from counts of events under two neighbouring inputs.

    (epsilon, delta)-DP says p <= exp(epsilon) q + delta for every event with probabilities p and q. So epsilon >=
    log((p - delta) / q), with a lower limit for p and an upper limit for q. The bound tries every event in both
    directions. The error probability 1 - confidence is split evenly over all events, directions and limits
    (Bonferroni), so that the largest bound also holds.

    Args:
        counts: [...] integers, occurrences of each event under the first input. The events must not depend on these
            counts.
        trials: number of outputs under the first input, >= 1.
        other_counts: [...] integers, occurrences of the same events under the second input.
        other_trials: number of outputs under the second input, >= 1.
        delta: claimed delta, in [0, 1).
        confidence: confidence of the bound, in (0, 1).

    Returns:
        The largest bound; its epsilon is 0 if nothing is proved.

    Raises:
        ValueError: if there is no event, the two shapes differ, or a value is out of range.

    Examples:
        >>> bound = epsilon_lower_bound([7_310], 10_000, [2_690], 10_000)  # randomized response at epsilon = 1
        >>> round(bound.epsilon, 3), bound.direction
        (0.949, 'first over second')
    """
    if not 0 <= delta < 1:
        raise ValueError(f"delta must be in [0, 1), got {delta}")
    first, second = np.atleast_1d(counts), np.atleast_1d(other_counts)
    if first.size == 0 or first.shape != second.shape:
        raise ValueError(f"both counts must have one shape and at least one event, got {first.shape}, {second.shape}")
    error = (1 - check_probability("confidence", confidence)) / (4 * first.size)
    bounds = np.stack(
        [
            log_ratio_bound(first.ravel(), trials, second.ravel(), other_trials, delta=delta, error=error),
            log_ratio_bound(second.ravel(), other_trials, first.ravel(), trials, delta=delta, error=error),
        ]
    )
    direction, event = (int(i) for i in np.unravel_index(np.argmax(bounds), bounds.shape))
    return EpsilonBound(max(0.0, float(bounds[direction, event])), event, DIRECTIONS[direction])


def log_ratio_bound(
    counts: ArrayLike, trials: int, other_counts: ArrayLike, other_trials: int, *, delta: float, error: float
) -> np.ndarray:
    """Returns log((p - delta) / q) at the lower limit of p and the upper limit of q.

    p is an event's probability under the input that should make it likely, and q its probability under the other input.
    Each confidence limit fails with probability at most `error`.

    Args:
        counts: [...] integers, occurrences of events under the input that should make them likely.
        trials: number of outputs under that input.
        other_counts: [...] integers, occurrences of the same events under the other input.
        other_trials: number of outputs under the other input.
        delta: in [0, 1).
        error: in (0, 1/2).

    Returns:
        [...] float64; -inf where p's lower limit is not above delta.

    Raises:
        ValueError: if a count is not an integer in [0, trials], or trials are < 1.
    """
    likely = lower_limit(counts, trials, error) - delta
    unlikely = upper_limit(other_counts, other_trials, error)
    return np.where(likely > 0, np.log(np.maximum(likely, math.ulp(0.0))) - np.log(unlikely), -math.inf)


def mu_bound(counts: ArrayLike, trials: int, other_counts: ArrayLike, other_trials: int, *, error: float) -> np.ndarray:
    """Returns a lower bound on the mu of Gaussian DP from counts.

    The bound is quantile(lower limit of p) - quantile(upper limit of q), with normal quantiles, and with p and q as in
    `log_ratio_bound`. Each limit fails with probability at most `error`.

    Args:
        counts: as for `log_ratio_bound`.
        trials: as for `log_ratio_bound`.
        other_counts: as for `log_ratio_bound`.
        other_trials: as for `log_ratio_bound`.
        error: as for `log_ratio_bound`.

    Returns:
        [...] float64; -inf where p's lower limit is 0 or q's upper limit is 1.

    Raises:
        ValueError: if a count is not an integer in [0, trials], or trials are < 1.

    Source:
        Dong, Roth & Su (2022), Definition 2.6.
    """
    return ndtri(lower_limit(counts, trials, error)) - ndtri(upper_limit(other_counts, other_trials, error))


def check_counts(counts: ArrayLike, trials: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """Returns counts and trials as float64, broadcast.

    Raises a ValueError unless trials are >= 1, and counts are integers in [0, trials].
    """
    successes, total = np.broadcast_arrays(np.asarray(counts, np.float64), np.asarray(trials, np.float64))
    if not np.all(total >= 1):
        raise ValueError(f"trials must be >= 1, got {np.min(total):g}")
    bad = ~((successes >= 0) & (successes <= total) & (successes == np.floor(successes)))
    if bad.any():
        raise ValueError(f"counts must be integers in [0, trials], got {successes[bad][0]:g} of {total[bad][0]:g}")
    return successes, total

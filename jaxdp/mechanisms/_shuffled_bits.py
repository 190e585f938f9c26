"""The exact budget of a shuffled batch of binary randomized responses: float64 on the host.

Laws are made by adding and multiplying positive numbers only, so that the probabilities of tails keep their digits.
"""

import functools
import heapq
import math
from collections.abc import Callable

import numpy as np

MARGIN = 1e-10  # relative; covers the rounding of the exact delta, see `shuffle_delta`
LEFT_OUT = 1e-35  # more than the probability that is neglected
LARGEST_LOCAL = 500.0  # beyond this local epsilon a report counts as not randomized


def last(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Nearly the largest number at which a condition holds, by bisection: it holds at low, and not at high."""
    while high - low > 1e-13 * high:
        middle = low + (high - low) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@functools.lru_cache(maxsize=4096)  # a search over the batch asks for the same again
def largest_exact(epsilon: float, delta: float, batch: int) -> float:
    """As `shuffle_local_epsilon`, by the exact delta.

    The search looks at few numbers of ones among the others, and then at all of them; one that is worse is added to
    the few. Each is monotone in the local epsilon by itself, for the same reason as their maximum.
    """
    suspects = {batch - 1}

    def holds(local_epsilon: float) -> bool:
        if local_epsilon > LARGEST_LOCAL:
            return False
        measure = delta_measure(epsilon, local_epsilon)
        return all(measure(law_of_others(ones, local_epsilon, batch)) <= delta for ones in suspects)

    low, high = epsilon, 2 * epsilon + 1  # at local epsilon = epsilon delta is 0
    while holds(high):
        low, high = high, 2 * high
    while True:
        found = last(holds, low, high)
        if found <= epsilon:
            return epsilon
        delta_found, ones = worst_delta(epsilon, found, batch)
        if delta_found <= delta:
            return found
        suspects.add(ones)
        low, high = epsilon, found


def worst_delta(epsilon: float, local_epsilon: float, batch: int) -> tuple[float, int]:
    """Delta at epsilon < local_epsilon, and the number of ones among the others for which it is largest."""
    if local_epsilon > LARGEST_LOCAL:
        return 1.0, batch - 1
    return worst(delta_measure(epsilon, local_epsilon), local_epsilon, batch)


def worst(measure: Callable[[np.ndarray], float], local_epsilon: float, batch: int) -> tuple[float, int]:
    """The largest measure of laws of the others' count, and the number of ones among them.

    The report of one user more can be added to the count afterwards, so that the measure never increases with the zeros
    or with the ones among the others. Hence no law with `least` to `most` zeros has a larger measure than that of
    `least` zeros and of as many ones as go with `most`. The range of the largest such bound is halved until it is a
    single law.
    """
    others = batch - 1

    def bounded(least: int, most: int) -> tuple[float, int, int]:
        return -measure(law_of_reports(others - most, least, local_epsilon)), least, most

    ranges = [bounded(0, others)]
    while True:
        bound, least, most = heapq.heappop(ranges)
        if least == most:
            return -bound, others - least
        middle = (least + most) // 2
        heapq.heappush(ranges, bounded(least, middle))
        heapq.heappush(ranges, bounded(middle + 1, most))


def delta_measure(epsilon: float, local_epsilon: float) -> Callable[[np.ndarray], float]:
    """The hockey-stick divergence of the count with the user's bit 1 from that with 0, by the law of the others' count.

    With w_j = P(j ones among the others' reports), the two laws have q w_j + p w_{j-1} and p w_j + q w_{j-1} at j, and
    the terms are (p - e^epsilon q) w_{j-1} - (e^epsilon p - q) w_j where they are positive.
    """
    keep, _ = odds(local_epsilon)
    # Without the cancelling differences, as q = p e^-local_epsilon.
    gain = -keep * math.expm1(epsilon - local_epsilon)
    loss = -keep * math.exp(epsilon) * math.expm1(-(epsilon + local_epsilon))

    def measure(law: np.ndarray) -> float:
        terms = gain * law
        terms[:-1] -= loss * law[1:]
        return min(1.0, float(np.maximum(terms, 0.0).sum()) * (1 + MARGIN) + LEFT_OUT)

    return measure


def tail_epsilon(delta: float, keep: float, move: float, law: np.ndarray) -> float:
    """The largest log((P(count >= j) - delta) / P'(count >= j)), the user's bit 1 in P and 0 in P'."""
    tail = np.append(law[::-1].cumsum()[::-1], 0.0)  # of the others' count, from each j on
    more = np.append(1.0, tail[:-1])  # from j - 1 on
    likely, unlikely = move * tail + keep * more - delta, keep * tail + move * more
    above = likely > 0
    return float(np.max(np.log(likely[above] / unlikely[above]), initial=-math.inf))


def odds(local_epsilon: float) -> tuple[float, float]:
    """The probabilities that a bit is kept and that it is moved."""
    rare = math.exp(-local_epsilon)
    return 1 / (1 + rare), rare / (1 + rare)


def law_of_others(ones: int, local_epsilon: float, batch: int) -> np.ndarray:
    """Probabilities of the count of batch - 1 reports of which `ones` are of ones; far tails are left out."""
    return law_of_reports(ones, batch - 1 - ones, local_epsilon)


def law_of_reports(ones: int, zeros: int, local_epsilon: float) -> np.ndarray:
    """Probabilities of the count of the reports of so many ones and zeros; far tails are left out."""
    keep, move = odds(local_epsilon)
    return np.convolve(binomial(ones, keep, move), binomial(zeros, move, keep))


def binomial(trials: int, success: float, failure: float) -> np.ndarray:
    """Probabilities of consecutive counts of successes around the mode, all but 2e-36 of them, by Bernstein's bound."""
    reach = 30 + math.ceil(math.sqrt(800 + 170 * trials * success * failure))
    mode = min(trials, int((trials + 1) * success))
    up = np.arange(mode, min(trials, mode + reach))
    down = np.arange(mode, max(0, mode - reach), -1)
    # Ratios of neighbours: none above 1, nothing cancels.
    above = np.cumprod((trials - up) / (up + 1) * (success / failure))
    below = np.cumprod(down / (trials - down + 1) * (failure / success))
    weights = np.concatenate([below[::-1], [1.0], above])
    return weights / weights.sum()

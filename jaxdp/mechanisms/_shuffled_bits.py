"""The exact budget of a shuffled batch of binary randomized responses, in float64 on the host.

Distributions are computed by adding and multiplying positive numbers only, so that tail probabilities keep their
digits.
"""

import functools
import heapq
import math
from collections.abc import Callable, Iterator

import numpy as np

MARGIN = 1e-10  # relative; covers rounding of the exact delta, see `shuffle_delta`
LEFT_OUT = 1e-35  # larger than the neglected probability
LARGEST_LOCAL = 500.0  # above this local epsilon, a report is treated as if it were not randomized


def largest_true(holds: Callable[[float], bool], low: float, high: float) -> float:
    """Returns the largest number at which `holds` is true, to a relative 1e-13, if true at low and false at high."""
    while high - low > 1e-13 * high:
        middle = low + (high - low) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


@functools.lru_cache(maxsize=4096)  # a search over the batch repeats calls
def largest_exact(epsilon: float, delta: float, batch: int) -> float:
    """Returns the largest local epsilon >= epsilon at which the `worst_delta` of the batch is at most `delta`."""
    # The search checks a few numbers of ones among the others (`suspects`), and then all numbers. If another number has
    # a larger delta, it becomes a suspect, and the search starts again. No delta decreases with the local epsilon.
    suspects = {batch - 1}

    def holds(local_epsilon: float) -> bool:
        if local_epsilon > LARGEST_LOCAL:
            return False
        measure = delta_measure(epsilon, local_epsilon)
        return all(measure(count_distribution(ones, local_epsilon, batch)) <= delta for ones in suspects)

    low, high = epsilon, 2 * epsilon + 1  # delta is 0 at local epsilon = epsilon
    while holds(high):
        low, high = high, 2 * high
    while True:
        candidate = largest_true(holds, low, high)
        if candidate <= epsilon:
            return epsilon
        largest_delta, ones = worst_delta(epsilon, candidate, batch)
        if largest_delta <= delta:
            return candidate
        suspects.add(ones)
        low, high = epsilon, candidate


def worst_delta(epsilon: float, local_epsilon: float, batch: int) -> tuple[float, int]:
    """Returns the maximum delta over the number of other users with a 1, and the number that attains the maximum.

    `epsilon` is below `local_epsilon`. For a local epsilon above 500 the delta is set to 1.
    """
    if local_epsilon > LARGEST_LOCAL:
        return 1.0, batch - 1
    return worst(delta_measure(epsilon, local_epsilon), local_epsilon, batch)


def worst(measure: Callable[[np.ndarray], float], local_epsilon: float, batch: int) -> tuple[float, int]:
    """Returns the maximum `measure` over the number of other users with a 1, and the number that attains the maximum.

    `measure` takes the distribution of the number of ones among the other users' reports. The batch has batch - 1 other
    users; `measure` is also called for fewer users, and must not increase if a user joins.
    """
    bounds = _falling_bounds(measure, local_epsilon, batch)
    return next((bound, batch - 1 - fewest) for bound, fewest, largest in bounds if fewest == largest)


def is_delta_at_most(limit: float, epsilon: float, local_epsilon: float, batch: int) -> bool:
    """Returns whether the `worst_delta` is at most `limit`, without computing it to the last digit."""
    if local_epsilon > LARGEST_LOCAL:
        return limit >= 1
    measure = delta_measure(epsilon, local_epsilon)
    if measure(count_distribution(batch - 1, local_epsilon, batch)) > limit:
        return False
    bounds = _falling_bounds(measure, local_epsilon, batch)
    return next(bound <= limit for bound, fewest, largest in bounds if bound <= limit or fewest == largest)


def _falling_bounds(
    measure: Callable[[np.ndarray], float], local_epsilon: float, batch: int
) -> Iterator[tuple[float, int, int]]:
    """Yields the largest bound on `measure` and its range [fewest, largest] of numbers of zeros; then halves the range.

    A divergence never increases if another user joins, as the user's report can be added to the count afterwards. So
    the value for `fewest` zeros and num_others - `largest` ones bounds the values for all numbers in the range.
    """
    num_others = batch - 1

    def bound_range(fewest: int, largest: int) -> tuple[float, int, int]:
        return -measure(reports_distribution(num_others - largest, fewest, local_epsilon)), fewest, largest

    ranges = [bound_range(0, num_others)]
    while True:
        bound, fewest, largest = heapq.heappop(ranges)
        yield -bound, fewest, largest
        middle = (fewest + largest) // 2
        heapq.heappush(ranges, bound_range(fewest, middle))
        heapq.heappush(ranges, bound_range(middle + 1, largest))


def delta_measure(epsilon: float, local_epsilon: float) -> Callable[[np.ndarray], float]:
    """Builds a function that returns the largest P(E) - e^epsilon P'(E) over events E, rounded up.

    P and P' are the distributions of the number of ones among all reports if one user's bit is 1 and 0, respectively. E
    is a set of values of this number. The function's argument is the distribution of the number of ones among the
    reports of all other users.
    """
    # A bit is kept with probability p and flipped with q. With w_j = P(j ones among the others' reports), P and P' are
    # q w_j + p w_{j-1} and p w_j + q w_{j-1} at j. The divergence sums (p - e^epsilon q) w_{j-1} - (e^epsilon p - q)
    # w_j where this is positive.
    keep, _ = odds(local_epsilon)
    # q = p e^-local_epsilon avoids cancelling differences
    gain = -keep * math.expm1(epsilon - local_epsilon)
    loss = -keep * math.exp(epsilon) * math.expm1(-(epsilon + local_epsilon))

    def measure(others: np.ndarray) -> float:
        terms = gain * others
        terms[:-1] -= loss * others[1:]
        return min(1.0, float(np.maximum(terms, 0.0).sum()) * (1 + MARGIN) + LEFT_OUT)

    return measure


def tail_epsilon(delta: float, keep: float, move: float, probabilities: np.ndarray) -> float:
    """Returns the largest log((P(count >= j) - delta) / P'(count >= j)) over all j with a numerator > 0.

    `count` is the number of ones among all reports; one user's bit is 1 in P and 0 in P'. `probabilities` is the
    distribution of the other users' count; `keep` and `move` are the probabilities that a bit is kept and flipped. The
    result is -inf if no numerator is > 0.
    """
    tail = np.append(probabilities[::-1].cumsum()[::-1], 0.0)  # P(the others' count >= j)
    more = np.append(1.0, tail[:-1])  # P(the others' count >= j - 1)
    likely, unlikely = move * tail + keep * more - delta, keep * tail + move * more
    above = likely > 0
    return float(np.max(np.log(likely[above] / unlikely[above]), initial=-math.inf))


def odds(local_epsilon: float) -> tuple[float, float]:
    """Returns the probabilities that a bit is kept and that it is flipped."""
    rare = math.exp(-local_epsilon)
    return 1 / (1 + rare), rare / (1 + rare)


def count_distribution(ones: int, local_epsilon: float, batch: int) -> np.ndarray:
    """Returns the distribution of the number of ones among the reports of batch - 1 users, if `ones` users have a 1.

    Far tails are left out, as in `reports_distribution`.
    """
    return reports_distribution(ones, batch - 1 - ones, local_epsilon)


def reports_distribution(ones: int, zeros: int, local_epsilon: float) -> np.ndarray:
    """Returns the distribution of the number of ones among the reports of `ones` users with a 1 and `zeros` with a 0.

    Far tails are left out, so the array need not start at the number 0. Its sum is 1.
    """
    keep, move = odds(local_epsilon)
    return np.convolve(binomial(ones, keep, move), binomial(zeros, move, keep))


def binomial(trials: int, success: float, failure: float) -> np.ndarray:
    """Returns binomial probabilities in a range around the mode, scaled so that their sum is 1.

    The array need not start at 0 successes. By Bernstein's bound, the range leaves out a probability of at most 2e-36.
    """
    reach = 30 + math.ceil(math.sqrt(800 + 170 * trials * success * failure))
    mode = min(trials, int((trials + 1) * success))
    up = np.arange(mode, min(trials, mode + reach))
    down = np.arange(mode, max(0, mode - reach), -1)
    # ratios of neighbours are at most 1, and nothing cancels
    above = np.cumprod((trials - up) / (up + 1) * (success / failure))
    below = np.cumprod(down / (trials - down + 1) * (failure / success))
    weights = np.concatenate([below[::-1], [1.0], above])
    return weights / weights.sum()

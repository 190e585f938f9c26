"""An independent NumPy version of phased duels in the shuffle model: float64, one lane at a time.

It is written from the papers and the docstring. Budgets come from distributions of counts by SciPy's binomial
probabilities, and from plain scans and bisections, to about 1e-12 of delta; nothing is shared with the library's
accounting.
"""

import functools
import math

import numpy as np
from scipy.optimize import brentq
from scipy.signal import fftconvolve
from scipy.stats import binom

from tests.algorithms.dueling.golden_duels import Played, played_phases

FEW = 10  # numbers of zeros among the others that are tried; and further ones in steps
LARGEST_BUDGET = 8.0
LARGEST_EXACT = 10_000


def spent_delta(epsilon, budget, users):
    """Returns the delta of a shuffled batch: the largest over both orders, and over the numbers of ones that may be
    worst.
    """
    move = 1 / (1 + math.exp(budget))
    others, worst = users - 1, 0.0
    tried = {*range(FEW), *range(FEW, others, 1 + others // 5)}
    for zeros in sorted(z for z in tried if z <= others):
        distribution = fftconvolve(
            binom.pmf(np.arange(others - zeros + 1), others - zeros, 1 - move),
            binom.pmf(np.arange(zeros + 1), zeros, move),
        )
        one = (1 - move) * np.append(0, distribution) + move * np.append(distribution, 0)
        zero = move * np.append(0, distribution) + (1 - move) * np.append(distribution, 0)
        for first, second in ((one, zero), (zero, one)):
            worst = max(worst, np.maximum(first - math.exp(epsilon) * second, 0).sum())
    return worst


def _bisect(holds, low, high, whole=False):
    """Returns a number at which the condition holds and the next one at which it does not, starting from such a
    pair.
    """
    for _ in range(60):
        middle = (low + high) // 2 if whole else (low + high) / 2
        if middle == low or abs(high - low) < 1e-10:
            break
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low, high


@functools.lru_cache(maxsize=1000)
def largest_budget(epsilon, delta, users):
    if epsilon == math.inf:
        return math.inf
    if users > LARGEST_EXACT:
        return max(largest_budget(epsilon, delta, LARGEST_EXACT), closed_form(epsilon, delta, users))
    if spent_delta(epsilon, LARGEST_BUDGET, users) <= delta:
        return LARGEST_BUDGET

    def excess(budget):
        return math.log(max(spent_delta(epsilon, budget, users), 1e-30) / delta)

    return float(brentq(excess, epsilon, LARGEST_BUDGET))  # pyright: ignore[reportArgumentType]


def closed_form(epsilon, delta, users):
    """Solves Feldman, McMillan & Talwar (2021), Theorem 3.1, for the local budget."""
    limit = math.log(users / (16 * math.log(2 / delta)))

    def holds(budget):
        e = math.exp(budget)
        spent = (e - 1) / (e + 1) * (8 * math.sqrt(e * math.log(4 / delta) / users) + 8 * e / users)
        return budget <= limit and math.log(1 + spent) <= epsilon

    return min(LARGEST_BUDGET, _bisect(holds, 0.0, 100.0)[0])


@functools.lru_cache(maxsize=1000)
def batch(epsilon, delta, phase, size, failure_prob, multiplier):
    """Returns the number of users of a batch, and their local budget."""
    gap, x = 0.5**phase, math.log(4 * size * phase**2 / failure_prob)

    def too_few(users):
        needed = gap / 4 / math.sqrt(x / (2 * users))  # c must be at most this
        if not needed > 1:
            return True
        budget = math.log((needed + 1) / (needed - 1))  # with this c
        if budget <= epsilon:
            return False
        if users > LARGEST_EXACT:
            return budget > largest_budget(epsilon, delta, users)
        return budget > LARGEST_BUDGET or spent_delta(epsilon, budget, users) > delta

    _, users = _bisect(too_few, 1, math.ceil(8 * x / gap**2 / math.tanh(epsilon / 2) ** 2), whole=True)
    users = size * math.ceil(multiplier * users / size)
    return users, largest_budget(epsilon, delta, users)


def ebs_shuffle(generator, epsilon, *, matrix, horizon, looks, delta, failure_prob, multiplier, lanes):
    def length(phase, size):
        return batch(epsilon, delta, phase, size, failure_prob, multiplier)[0]

    def keep(phase, active, users):
        _, budget = batch(epsilon, delta, phase, len(active), failure_prob, multiplier)
        bias, move = 1 / math.tanh(budget / 2), 1 / (1 + math.exp(budget)) if budget < math.inf else 0.0
        ones = np.zeros(len(active))
        for i, left in enumerate(active):
            for right in active:
                wins = generator.binomial(users // len(active), matrix[left, right])
                ones[i] += generator.binomial(wins, 1 - move)
                ones[i] += generator.binomial(users // len(active) - wins, move)
        shares = bias * (ones / users - 0.5) + 0.5
        return shares.max() - shares <= 0.5**phase / 2 + 1e-12

    return Played(*played_phases(len(matrix), horizon, looks, lanes, length, keep))

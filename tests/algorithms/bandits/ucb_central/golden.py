"""An independent version of `ucb_central`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.golden_arms import largest
from tests.algorithms.bandits.ucb.golden import ucb


def ucb_central_blocks(generator, epsilon, *, means, horizon, lanes, rate):
    """Plays one lane after the other, a block at a time."""
    num = len(means)
    played = np.zeros((lanes, num), int)
    for lane in range(lanes):
        sums, plays, t = np.zeros(num), np.zeros(num, int), 0
        while t < horizon:
            if t < num:
                arm = t
            else:
                x = rate * math.log(t)
                blocks = np.log2(plays) + 1
                noise = (x + blocks * np.log(1 + x / blocks)) * np.sqrt(1 + blocks / x) / epsilon
                arm = int(largest(generator, (sums / plays + np.sqrt(x / (2 * plays)) + noise / plays)[None])[0])
            each = min(max(plays[arm], 1), horizon - t)
            played[lane, arm] += each
            t += each
            paid = generator.binomial(each, means[arm])
            sums[arm] += paid + (generator.laplace(0, 1 / epsilon) if epsilon < math.inf else 0)
            plays[arm] += each
    return played


def ucb_central_tree(generator, epsilon, *, means, horizon, lanes, rate):
    """Plays UCB1 without privacy, where the counters are exact."""
    assert epsilon == math.inf
    return ucb(generator, epsilon, means=means, horizon=horizon, lanes=lanes, rate=rate)

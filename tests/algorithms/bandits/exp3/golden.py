"""An independent version of `exp3`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.golden_arms import drawn, losses_of, rewards_of


def exp3(generator, epsilon, *, means, horizon, lanes, report="rr", failure_prob=None):
    num, rows = len(means), np.arange(lanes)
    rate = math.sqrt(2 * math.log(num) / (num * horizon))
    totals, played = np.zeros((lanes, num)), np.zeros((lanes, num), int)
    for _ in range(horizon):
        w = np.exp(-rate * (totals - totals.min(1, keepdims=True)))
        w /= w.sum(1, keepdims=True)
        arm = drawn(generator, w)
        paid = rewards_of(generator, means, arm)
        totals[rows, arm] += losses_of(generator, epsilon, paid, report, horizon, None, failure_prob) / w[rows, arm]
        played[rows, arm] += 1
    return played

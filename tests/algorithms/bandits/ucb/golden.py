"""An independent version of `ucb`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.golden_arms import bits, factor, largest, rewards_of
from tests.algorithms.dueling.golden_duels import gaussian_stddev


def ucb(generator, epsilon, *, means, horizon, lanes, rate, report="rr", delta=None):
    num, rows = len(means), np.arange(lanes)
    sums, played = np.zeros((lanes, num)), np.zeros((lanes, num), int)
    stddev = gaussian_stddev(epsilon, delta) if report == "gaussian" else 0.0
    proxy = factor(epsilon) ** 2 / 4 if report == "rr" else 0.25 + stddev**2
    for t in range(horizon):
        if t < num:
            arm = np.full(lanes, t)
        else:
            arm = largest(generator, sums / played + np.sqrt(2 * rate * proxy * math.log(t) / played))
        paid = rewards_of(generator, means, arm)
        if report == "rr":
            said = (bits(generator, epsilon, paid) - 0.5) * factor(epsilon) + 0.5
        else:
            said = paid + stddev * generator.normal(0, 1, lanes)
        sums[rows, arm] += said
        played[rows, arm] += 1
    return played

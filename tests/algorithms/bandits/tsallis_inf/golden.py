"""An independent version of `tsallis_inf`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.golden_arms import drawn, losses_of, rewards_of
from tests.algorithms.dueling.golden_duels import tsallis_weights


def tsallis_inf(
    generator, epsilon, *, means, horizon, lanes, reduced=False, report="rr", delta=None, failure_prob=None
):
    num, rows = len(means), np.arange(lanes)
    totals, played = np.zeros((lanes, num)), np.zeros((lanes, num), int)
    for t in range(1, horizon + 1):
        rate = (4 if reduced else 2) / math.sqrt(t)
        w = tsallis_weights(totals, rate)
        arm = drawn(generator, w)
        loss = losses_of(generator, epsilon, rewards_of(generator, means, arm), report, horizon, delta, failure_prob)
        base = np.where(w >= rate**2, 0.5, 0.0) if reduced else np.zeros_like(w)
        totals += base
        totals[rows, arm] += (loss - base[rows, arm]) / w[rows, arm]
        played[rows, arm] += 1
    return played

"""An independent version of `successive_elimination`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.golden_best_arm import outputs, proxy, reports


def successive_elimination(generator, lanes, *, means, failure_prob, multiplier=1.0, spread=None, **randomizer):
    arms, every = len(means), np.arange(lanes)
    variance = proxy(**randomizer)
    active, sums = np.ones((lanes, arms), bool), np.zeros((lanes, arms))
    rounds, plays = np.zeros(lanes), np.zeros((lanes, arms))
    for r in range(1, 10**6):
        runs = active.sum(axis=1) > 1
        if not runs.any():
            return outputs(rounds, np.argmax(active, axis=1), plays)
        for arm in range(arms):
            told = reports(generator, np.full(lanes, arm), means, spread=spread, **randomizer)
            here = runs & active[:, arm]
            sums[every[here], arm] += told[here]
            plays[here, arm] += 1
            rounds[here] += 1
        radius = multiplier * math.sqrt(2 * variance * math.log(math.pi**2 * arms * r**2 / (3 * failure_prob)) / r)
        mean = np.where(active, sums / r, -np.inf)
        drop = mean.max(axis=1, keepdims=True) - mean > 2 * radius
        active &= ~(drop & runs[:, None])
    raise AssertionError

"""An independent version of `thompson_central`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.golden_arms import rewards_of


def thompson_central(generator, epsilon, *, means, horizon, lanes, growth, weight):
    num, rows = len(means), np.arange(lanes)
    noisy, open_total = np.zeros((2, lanes, num))
    released, waiting, blocks = np.zeros((3, lanes, num), int)
    ratio = math.exp(-epsilon)  # of the noise's probabilities
    variance = 2 * ratio / (1 - ratio) ** 2  # of a total's noise
    for _ in range(horizon):
        ones = noisy.clip(0, released)
        # the variance of released rewards, n / 4, divided by their variance with the noise
        worth = (released / 4) / np.maximum(released / 4 + weight * variance * blocks, 1e-9)
        arm = generator.beta(1 + worth * ones, 1 + worth * (released - ones)).argmax(1)
        open_total[rows, arm] += rewards_of(generator, means, arm)
        waiting[rows, arm] += 1
        ends = rows[waiting[rows, arm] >= np.maximum(np.floor(growth * released[rows, arm]), 1)]
        arm = arm[ends]
        up, down = generator.geometric(1 - ratio, (2, len(ends)))
        noisy[ends, arm] += open_total[ends, arm] + up - down
        released[ends, arm] += waiting[ends, arm]
        blocks[ends, arm] += 1
        open_total[ends, arm], waiting[ends, arm] = 0, 0
    return released + waiting

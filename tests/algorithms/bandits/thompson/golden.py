"""An independent version of `thompson`, in NumPy."""

import numpy as np

from tests.algorithms.bandits.golden_arms import bits, factor, rewards_of


def thompson(generator, epsilon, *, means, horizon, lanes, debiased=False):
    num, rows = len(means), np.arange(lanes)
    ones, played = np.zeros((lanes, num)), np.zeros((lanes, num), int)
    for _ in range(horizon):
        first, second = ones, played - ones
        if debiased:
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(played > 0, (ones / played - 0.5) * factor(epsilon) + 0.5, 0.5).clip(0, 1)
            first, second = (part * played / factor(epsilon) ** 2 for part in (share, 1 - share))
        arm = generator.beta(1 + first, 1 + second).argmax(1)
        ones[rows, arm] += bits(generator, epsilon, rewards_of(generator, means, arm))
        played[rows, arm] += 1
    return played

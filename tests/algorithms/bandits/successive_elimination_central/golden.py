"""An independent version of `successive_elimination_central`, in NumPy."""

import math

import numpy as np


def successive_elimination_central(generator, epsilon, *, means, horizon, lanes, failure_prob, multiplier):
    """Plays one lane after the other, an epoch at a time."""
    played = np.zeros((lanes, len(means)), int)
    for lane in range(lanes):
        active, rest, epoch = np.arange(len(means)), horizon, 0
        while rest > 0:
            epoch += 1
            size, gap = len(active), 0.5**epoch
            hoeffding = math.log(8 * size * epoch**2 / failure_prob)
            laplace = math.log(4 * size * epoch**2 / failure_prob) / epsilon
            # sqrt(hoeffding / (2 R)) + laplace / R = gap / 4 by bisection in R
            low, high = 1e-9, 1e12
            for _ in range(200):
                middle = math.sqrt(low * high)
                wide = math.sqrt(hoeffding / (2 * middle)) + laplace / middle > gap / 4
                low, high = (middle, high) if wide else (low, middle)
            each = math.ceil(multiplier * high - 1e-6)
            if size == 1 or each * size > rest:
                in_turn = np.bincount(np.arange(min(rest, size * (rest // size + 1))) % size, minlength=size)
                played[lane, active] += in_turn if size > 1 else rest
                break
            played[lane, active] += each
            rest -= each * size
            noise = generator.laplace(0, 1 / epsilon, size) if epsilon < math.inf else 0
            noisy = generator.binomial(each, means[active]) + noise
            active = active[noisy >= noisy.max() - each * gap / 2]
    return played

"""An independent version of `ebs_phased`, in NumPy."""

import functools
import math

import numpy as np

from tests.algorithms.dueling.golden_duels import Played, played_phases


def ebs_phased(generator, epsilon, *, matrix, horizon, looks, failure_prob, multiplier, lanes, constants="tight"):
    """Plays phases of balanced duels; wins get Laplace(1 / epsilon), and arms more than n D / 2 behind are dropped."""

    @functools.cache
    def length(phase, size):
        gap, x = 0.5**phase, math.log(8 * size * phase**2 / failure_prob)
        duels = max(32 * x / gap**2, 8 * x / (epsilon * gap))
        if constants == "tight":  # both errors together within a quarter of the gap
            low, high = 1.0, duels
            for _ in range(200):
                middle = (low + high) / 2
                enough = math.sqrt(x / (2 * middle)) + x / (epsilon * middle) <= gap / 4
                low, high = (low, middle) if enough else (middle, high)
            duels = high
        return size * math.ceil(math.ceil(multiplier * duels) / size)

    def keep(phase, active, duels):
        wins = [sum(generator.binomial(duels // len(active), matrix[i, j]) for j in active) for i in active]
        noisy = np.asarray(wins) + (generator.laplace(0, 1 / epsilon, len(active)) if epsilon < math.inf else 0)
        return noisy.max() - noisy <= duels * 0.5**phase / 2

    return Played(*played_phases(len(matrix), horizon, looks, lanes, length, keep))

"""An independent version of `versatile_sparring`, in NumPy."""

import math

import numpy as np

from tests.algorithms.dueling.golden_duels import Played, reports, tsallis_weights


def versatile_sparring(generator, epsilon, *, matrix, horizon, reduced, lanes, stddev=None, shift=0.0):
    """Plays with randomized bits, or, given a standard deviation, Gaussian reports that are shifted and clipped to
    [0, 1].
    """
    num, rows = len(matrix), np.arange(lanes)
    totals, played = [np.zeros((lanes, num)), np.zeros((lanes, num))], np.zeros((lanes, num, num), int)
    for t in range(1, horizon + 1):
        rate = (4 if reduced else 2) / math.sqrt(t)
        weights = [tsallis_weights(total, rate) for total in totals]
        left, right = (
            np.minimum((generator.random((lanes, 1)) > np.cumsum(w, axis=1)).sum(1), num - 1) for w in weights
        )
        if stddev is None:
            said = reports(generator, epsilon, matrix[left, right])
        else:
            noisy = (generator.random(lanes) < matrix[left, right]) + generator.normal(0, stddev, lanes)
            said = np.clip((noisy + shift) / (1 + 2 * shift), 0, 1)
        for total, w, arm, loss in zip(totals, weights, (left, right), (1 - said, said), strict=True):
            base = np.where(w >= rate**2, 0.5, 0.0) if reduced else np.zeros_like(w)
            total += base
            total[rows, arm] += (loss - base[rows, arm]) / w[rows, arm]
        played[rows, left, right] += 1
    return Played(played)

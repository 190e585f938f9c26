"""An independent version of `ebs_local`, in NumPy."""

import math

import numpy as np

from tests.algorithms.dueling.golden_duels import Played, bias, pick, reports


def ebs_local(generator, epsilon, *, matrix, horizon, looks, failure_prob, multiplier, lanes):
    num, rows = len(matrix), np.arange(lanes)
    active, kept = np.ones((lanes, num), bool), []
    wins, plays = np.zeros((lanes, num, num)), np.zeros((lanes, num, num), int)
    spread = multiplier * math.sqrt(math.log(2 * num * horizon / failure_prob) / 2)
    for t in range(1, horizon + 1):
        n = (plays * active[:, None, :]).sum(2)
        played = np.where(active, n, np.inf)
        left = pick(generator, played == played.min(1, keepdims=True))
        right = pick(generator, active)
        said = reports(generator, epsilon, matrix[left, right])
        plays[rows, left, right] += 1
        wins[rows, left, right] += said
        n = (plays * active[:, None, :]).sum(2)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (wins * active[:, None, :]).sum(2) / n
            debiased = np.where(n > 0, (share - 0.5) * bias(epsilon) + 0.5, 0.0)
            radius = np.where(n > 0, bias(epsilon) * spread / np.sqrt(n), np.inf)
        highest = np.where(active, debiased - radius, -np.inf).max(1)
        active &= debiased + radius >= highest[:, None]
        if t in looks:
            kept.append(active.copy())
    return Played(plays, np.stack(kept, axis=1))

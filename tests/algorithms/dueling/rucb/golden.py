"""An independent version of `rucb`, in NumPy."""

import math

import numpy as np

from tests.algorithms.dueling.golden_duels import Played, bias, pick, reports


def rucb(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows = len(matrix), np.arange(lanes)
    wins, played = np.zeros((lanes, num, num)), np.zeros((lanes, num, num), int)
    every, hypothesis = np.arange(num), np.full(lanes, -1)
    for t in range(1, horizon + 1):
        n = wins + wins.transpose(0, 2, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            debiased = (wins / n - 0.5) * bias(epsilon) + 0.5
            upper = np.where(n > 0, debiased + bias(epsilon) * np.sqrt(alpha * math.log(t) / n), 2.0)
        upper[:, np.arange(num), np.arange(num)] = 0.5
        champions = np.all(upper >= 0.5 - 1e-12, axis=2)
        count = champions.sum(1)
        hypothesis = np.where((champions & (every == hypothesis[:, None])).any(1), hypothesis, -1)
        hypothesis = np.where(count == 1, champions.argmax(1), hypothesis)
        left = pick(generator, champions | (count == 0)[:, None])
        rest = pick(generator, champions & (every != hypothesis[:, None]))
        halves = np.where(generator.random(lanes) < 0.5, hypothesis, rest)
        left = np.where((count > 1) & (hypothesis >= 0), halves, left)
        against = upper[rows, :, left]
        tied = against >= against.max(1, keepdims=True) - 1e-12
        tied[rows[tied.sum(1) > 1], left[tied.sum(1) > 1]] = False
        right = pick(generator, tied)
        said = reports(generator, epsilon, matrix[left, right])
        wins[rows, left, right] += said
        wins[rows, right, left] += 1 - said
        played[rows, left, right] += 1
    return Played(played)

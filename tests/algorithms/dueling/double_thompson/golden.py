"""An independent version of `double_thompson`, in NumPy."""

import math

import numpy as np

from tests.algorithms.dueling.golden_duels import Played, bias, pick, reports


def double_thompson(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows = len(matrix), np.arange(lanes)
    wins, played = np.zeros((lanes, num, num)), np.zeros((lanes, num, num), int)
    other = ~np.eye(num, dtype=bool)
    for t in range(1, horizon + 1):
        n = wins + wins.transpose(0, 2, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            debiased = np.where(n > 0, (wins / n - 0.5) * bias(epsilon) + 0.5, 1.0)
            radius = np.where(n > 0, bias(epsilon) * np.sqrt(alpha * math.log(t) / n), 1.0)  # x / 0 := 1
        upper, lower = debiased + radius, debiased - radius
        scores = ((upper > 0.5 + 1e-12) & other).sum(2)
        shares = np.clip(np.where(n > 0, debiased, 0.5), 0, 1) * n / bias(epsilon) ** 2
        theta = generator.beta(shares + 1, shares.transpose(0, 2, 1) + 1)
        theta = np.triu(theta, 1) + np.tril(1 - theta.transpose(0, 2, 1), -1)
        copeland = ((theta > 0.5) & other).sum(2)
        copeland = np.where(scores == scores.max(1, keepdims=True), copeland, -1)
        left = pick(generator, copeland == copeland.max(1, keepdims=True))
        second = generator.beta(shares[rows, :, left] + 1, shares[rows, left] + 1)
        second[rows, left] = 0.5
        allowed = lower[rows, :, left] <= 0.5 + 1e-12
        allowed[rows, left] = True
        right = np.where(allowed, second, -1).argmax(1)
        said = reports(generator, epsilon, matrix[left, right])
        wins[rows, left, right] += said
        wins[rows, right, left] += 1 - said
        played[rows, left, right] += 1
    return Played(played)

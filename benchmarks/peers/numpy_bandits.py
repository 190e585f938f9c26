"""Peers as scripts: one lane, one NumPy call after the other in each round. Each returns the pseudo-regret."""

import math

import numpy as np


def tsallis_inf(generator, means, keep, is_importance, horizon):
    num, losses, total = len(means), np.zeros(len(means)), 0.0
    for t in range(1, horizon + 1):
        rate = (2 if is_importance else 4) / math.sqrt(t)
        x = losses.min() - 2 / rate
        for _ in range(30):
            weights = 4 / (rate * (losses - x)) ** 2
            if abs(weights.sum() - 1) < 1e-6:
                break
            x -= (weights.sum() - 1) / (rate * (weights**1.5).sum())
        arm = generator.choice(num, p=weights / weights.sum())
        loss = float((generator.random() < means[arm]) != (generator.random() < keep))
        base = np.where(weights >= rate**2, 0.5, 0.0) if not is_importance else np.zeros(num)
        losses += base
        losses[arm] += (loss - base[arm]) / weights[arm]
        total += means.max() - means[arm]
    return total


def ucb(generator, means, keep, exploration_rate, horizon):
    num, total = len(means), 0.0
    ones, plays = np.zeros(num), np.zeros(num)
    for t in range(horizon):
        if t < num:
            arm = t
        else:
            spread = exploration_rate / 2 * math.log(t)
            arm = int(np.argmax(ones / plays + np.sqrt(spread / plays)))
        ones[arm] += (generator.random() < means[arm]) == (generator.random() < keep)
        plays[arm] += 1
        total += means.max() - means[arm]
    return total


def thompson(generator, means, keep, horizon):
    ones, zeros, total = np.ones(len(means)), np.ones(len(means)), 0.0
    for _ in range(horizon):
        arm = int(np.argmax(generator.beta(ones, zeros)))
        if (generator.random() < means[arm]) == (generator.random() < keep):
            ones[arm] += 1
        else:
            zeros[arm] += 1
        total += means.max() - means[arm]
    return total

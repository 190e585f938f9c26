"""An independent version of `adap_klucb`, in NumPy: it keeps each arm's last episode, and nothing else."""

import math

import numpy as np

from tests.algorithms.bandits.golden_arms import largest
from tests.algorithms.bandits.imed_central.golden import relative_entropy


def index(mean, count, time, epsilon, rate):
    """Computes the largest q with kl(clipped optimistic mean, q) <= rate ln(time) / count, by bisection."""
    width = rate * np.log(time) / count
    start = np.minimum(np.maximum(mean + (width / epsilon if epsilon < math.inf else 0), 0), 1)
    low, high = start.copy(), np.ones_like(start)
    for _ in range(60):
        middle = (low + high) / 2
        near = np.where(middle > start, relative_entropy(start, middle), 0) <= width
        low, high = np.where(near, middle, low), np.where(near, high, middle)
    return low


def adap_klucb(generator, epsilon, *, means, horizon, lanes, rate):
    """Plays all lanes by the paper's Algorithm 1: [lanes, arms] plays."""
    num, rows = len(means), np.arange(lanes)
    noise = (lambda: generator.laplace(0, 1 / epsilon, lanes)) if epsilon < math.inf else (lambda: 0.0)
    last_mean, last_count = np.zeros((lanes, num)), np.ones((lanes, num), int)
    for arm in range(num):
        last_mean[:, arm] = generator.binomial(1, means[arm], lanes) + noise()
    plays, time = np.ones((lanes, num), int), np.full(lanes, num)
    while np.any(time < horizon):
        arm = largest(generator, index(last_mean, last_count, time[:, None] + 1, epsilon, rate))
        length = np.minimum(plays[rows, arm], horizon - time)
        last_mean[rows, arm] = (generator.binomial(length, means[arm]) + noise()) / np.maximum(length, 1)
        last_count[rows, arm] = np.maximum(length, 1)
        plays[rows, arm] += length
        time += length
    return plays

"""Independent NumPy versions of the dueling algorithms, in float64, one lane at a time or all lanes side by side.

They are written from the papers and the docstrings. Each returns the plays of some lanes.
"""

import math
from typing import NamedTuple

import numpy as np


class Played(NamedTuple):
    """The plays of some lanes.

    Attributes:
        duels: [lanes, num_arms, num_arms] integers, how often the row's arm was on the left and the column's on the
            right.
        active: [lanes, num_looks, num_arms] bool, the arms that were left after some rounds; None without elimination.
    """

    duels: np.ndarray
    active: np.ndarray | None = None


def played_phases(num, horizon, looks, lanes, length, keep):
    """Plays phases of balanced duels; each active arm is on the left in `length(phase, size)` of them.

    Args:
        num: number of arms.
        horizon: rounds.
        looks: rounds after which the active arms are recorded.
        lanes: how many.
        length: (phase, active arms) -> duels of each.
        keep: (phase, list of active arms, duels of each) -> which of them stay, at random.

    Returns:
        (duels, active) as in `Played`.
    """
    played, kept = np.zeros((lanes, num, num), int), np.ones((lanes, len(looks), num), bool)
    for lane in range(lanes):
        active, start, phase = list(range(num)), 0, 0
        while start < horizon:
            phase, size = phase + 1, len(active)
            duels = length(phase, size) if size > 1 else 0
            end = start + duels * size if size > 1 else math.inf
            rounds = int(min(end, horizon)) - start
            for place in range(size * size):
                times = len(range(place, rounds, size * size))
                played[lane, active[place % size], active[place // size]] += times
            start += rounds
            if end <= horizon:
                active = [i for i, stays in zip(active, keep(phase, active, duels), strict=True) if stays]
                kept[lane, np.asarray(looks) >= end] = np.isin(range(num), active)
    return played, kept


def reports(generator, epsilon, probabilities):
    """Draws randomized responses to duels that are won with these probabilities."""
    outcomes = generator.random(len(probabilities)) < probabilities
    keeps = generator.random(len(probabilities)) < 1 / (1 + np.exp(-epsilon))
    return np.where(keeps, outcomes, ~outcomes).astype(float)


def pick(generator, allowed):
    """Draws one of the allowed arms, in each lane."""
    return np.argmax(np.where(allowed, generator.random(allowed.shape), -1), axis=1)


def bias(epsilon):
    """Returns c = (e^epsilon + 1) / (e^epsilon - 1)."""
    return 1 / math.tanh(epsilon / 2)


def tsallis_weights(losses, rate):
    """Solves by bisection for x between min(losses) - 2 sqrt(K) / rate, where the sum is <= 1, and min(losses) - 2
    / rate.
    """
    least = losses.min(1, keepdims=True)
    low, high = least - 2 * math.sqrt(losses.shape[1]) / rate, least - 2 / rate
    for _ in range(60):
        middle = (low + high) / 2
        small = (4 / (rate * (losses - middle)) ** 2).sum(1, keepdims=True) < 1
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return 4 / (rate * (losses - (low + high) / 2)) ** 2


def gaussian_stddev(epsilon, delta):
    """Returns the least noise of the Gaussian mechanism at sensitivity 1 (Balle & Wang, 2018), by bisection."""
    if epsilon == math.inf:
        return 0.0

    def tail(x):
        return math.erfc(x / math.sqrt(2)) / 2

    low, high = 1e-3, 1e3
    for _ in range(200):
        middle = math.sqrt(low * high)
        spent = tail(epsilon * middle - 1 / (2 * middle)) - math.exp(epsilon) * tail(
            epsilon * middle + 1 / (2 * middle)
        )
        low, high = (middle, high) if spent > delta else (low, middle)
    return high

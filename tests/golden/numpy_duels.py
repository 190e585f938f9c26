"""Independent NumPy versions of the dueling algorithms, in float64, one lane at a time or all lanes side by side.

Written from the papers and the docstrings. Each returns what was played in some lanes.
"""

import functools
import math
from typing import NamedTuple

import numpy as np


class Played(NamedTuple):
    """What was played.

    Attributes:
        duels: [lanes, num_arms, num_arms] integers, how often the row's arm was on the left and the column's on the
            right.
        active: [lanes, num_looks, num_arms] bool, the arms that were left after some rounds; None without elimination.
    """

    duels: np.ndarray
    active: np.ndarray | None = None


def played_phases(num, horizon, looks, lanes, length, keep):
    """Phases of balanced duels in which each of the active arms is on the left in `length(phase, size)`.

    Args:
        num: number of arms.
        horizon: rounds.
        looks: rounds after which it is told which arms are left.
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


def ebs_phased(generator, epsilon, *, matrix, horizon, looks, failure_prob, multiplier, lanes, constants="tight"):
    """Phases of balanced duels; wins plus Laplace(1 / epsilon); drop what is more than n D / 2 behind."""

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


def _reports(generator, epsilon, probabilities):
    """Randomized responses to duels that are won with these probabilities."""
    outcomes = generator.random(len(probabilities)) < probabilities
    keeps = generator.random(len(probabilities)) < 1 / (1 + np.exp(-epsilon))
    return np.where(keeps, outcomes, ~outcomes).astype(float)


def _pick(generator, allowed):
    """A random one of the allowed arms, in each lane."""
    return np.argmax(np.where(allowed, generator.random(allowed.shape), -1), axis=1)


def _bias(epsilon):
    """c = (e^epsilon + 1) / (e^epsilon - 1)."""
    return 1 / math.tanh(epsilon / 2)


def ebs_local(generator, epsilon, *, matrix, horizon, looks, failure_prob, multiplier, lanes):
    num, rows = len(matrix), np.arange(lanes)
    active, kept = np.ones((lanes, num), bool), []
    wins, plays = np.zeros((lanes, num, num)), np.zeros((lanes, num, num), int)
    spread = multiplier * math.sqrt(math.log(2 * num * horizon / failure_prob) / 2)
    for t in range(1, horizon + 1):
        n = (plays * active[:, None, :]).sum(2)
        played = np.where(active, n, np.inf)
        left = _pick(generator, played == played.min(1, keepdims=True))
        right = _pick(generator, active)
        said = _reports(generator, epsilon, matrix[left, right])
        plays[rows, left, right] += 1
        wins[rows, left, right] += said
        n = (plays * active[:, None, :]).sum(2)
        with np.errstate(divide="ignore", invalid="ignore"):
            share = (wins * active[:, None, :]).sum(2) / n
            debiased = np.where(n > 0, (share - 0.5) * _bias(epsilon) + 0.5, 0.0)
            radius = np.where(n > 0, _bias(epsilon) * spread / np.sqrt(n), np.inf)
        highest = np.where(active, debiased - radius, -np.inf).max(1)
        active &= debiased + radius >= highest[:, None]
        if t in looks:
            kept.append(active.copy())
    return Played(plays, np.stack(kept, axis=1))


def rucb(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows = len(matrix), np.arange(lanes)
    wins, played = np.zeros((lanes, num, num)), np.zeros((lanes, num, num), int)
    every, hypothesis = np.arange(num), np.full(lanes, -1)
    for t in range(1, horizon + 1):
        n = wins + wins.transpose(0, 2, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            debiased = (wins / n - 0.5) * _bias(epsilon) + 0.5
            upper = np.where(n > 0, debiased + _bias(epsilon) * np.sqrt(alpha * math.log(t) / n), 2.0)
        upper[:, np.arange(num), np.arange(num)] = 0.5
        champions = np.all(upper >= 0.5 - 1e-12, axis=2)
        count = champions.sum(1)
        hypothesis = np.where((champions & (every == hypothesis[:, None])).any(1), hypothesis, -1)
        hypothesis = np.where(count == 1, champions.argmax(1), hypothesis)
        left = _pick(generator, champions | (count == 0)[:, None])
        rest = _pick(generator, champions & (every != hypothesis[:, None]))
        halves = np.where(generator.random(lanes) < 0.5, hypothesis, rest)
        left = np.where((count > 1) & (hypothesis >= 0), halves, left)
        against = upper[rows, :, left]
        tied = against >= against.max(1, keepdims=True) - 1e-12
        tied[rows[tied.sum(1) > 1], left[tied.sum(1) > 1]] = False
        right = _pick(generator, tied)
        said = _reports(generator, epsilon, matrix[left, right])
        wins[rows, left, right] += said
        wins[rows, right, left] += 1 - said
        played[rows, left, right] += 1
    return Played(played)


def tsallis_weights(losses, rate):
    """By bisection: x from min(losses) - 2 sqrt(K) / rate, where the sum is at most 1, to min(losses) - 2 / rate."""
    least = losses.min(1, keepdims=True)
    low, high = least - 2 * math.sqrt(losses.shape[1]) / rate, least - 2 / rate
    for _ in range(60):
        middle = (low + high) / 2
        small = (4 / (rate * (losses - middle)) ** 2).sum(1, keepdims=True) < 1
        low, high = np.where(small, middle, low), np.where(small, high, middle)
    return 4 / (rate * (losses - (low + high) / 2)) ** 2


def versatile_sparring(generator, epsilon, *, matrix, horizon, reduced, lanes, stddev=None, shift=0.0):
    """Randomized bits, or with a standard deviation Gaussian reports, shifted and clipped to losses in [0, 1]."""
    num, rows = len(matrix), np.arange(lanes)
    totals, played = [np.zeros((lanes, num)), np.zeros((lanes, num))], np.zeros((lanes, num, num), int)
    for t in range(1, horizon + 1):
        rate = (4 if reduced else 2) / math.sqrt(t)
        weights = [tsallis_weights(total, rate) for total in totals]
        left, right = (
            np.minimum((generator.random((lanes, 1)) > np.cumsum(w, axis=1)).sum(1), num - 1) for w in weights
        )
        if stddev is None:
            said = _reports(generator, epsilon, matrix[left, right])
        else:
            noisy = (generator.random(lanes) < matrix[left, right]) + generator.normal(0, stddev, lanes)
            said = np.clip((noisy + shift) / (1 + 2 * shift), 0, 1)
        for total, w, arm, loss in zip(totals, weights, (left, right), (1 - said, said), strict=True):
            base = np.where(w >= rate**2, 0.5, 0.0) if reduced else np.zeros_like(w)
            total += base
            total[rows, arm] += (loss - base[rows, arm]) / w[rows, arm]
        played[rows, left, right] += 1
    return Played(played)


def double_thompson(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows = len(matrix), np.arange(lanes)
    wins, played = np.zeros((lanes, num, num)), np.zeros((lanes, num, num), int)
    other = ~np.eye(num, dtype=bool)
    for t in range(1, horizon + 1):
        n = wins + wins.transpose(0, 2, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            debiased = np.where(n > 0, (wins / n - 0.5) * _bias(epsilon) + 0.5, 1.0)
            radius = np.where(n > 0, _bias(epsilon) * np.sqrt(alpha * math.log(t) / n), 1.0)  # x / 0 := 1
        upper, lower = debiased + radius, debiased - radius
        scores = ((upper > 0.5 + 1e-12) & other).sum(2)
        shares = np.clip(np.where(n > 0, debiased, 0.5), 0, 1) * n / _bias(epsilon) ** 2
        theta = generator.beta(shares + 1, shares.transpose(0, 2, 1) + 1)
        theta = np.triu(theta, 1) + np.tril(1 - theta.transpose(0, 2, 1), -1)
        copeland = ((theta > 0.5) & other).sum(2)
        copeland = np.where(scores == scores.max(1, keepdims=True), copeland, -1)
        left = _pick(generator, copeland == copeland.max(1, keepdims=True))
        second = generator.beta(shares[rows, :, left] + 1, shares[rows, left] + 1)
        second[rows, left] = 0.5
        allowed = lower[rows, :, left] <= 0.5 + 1e-12
        allowed[rows, left] = True
        right = np.where(allowed, second, -1).argmax(1)
        said = _reports(generator, epsilon, matrix[left, right])
        wins[rows, left, right] += said
        wins[rows, right, left] += 1 - said
        played[rows, left, right] += 1
    return Played(played)


def gaussian_stddev(epsilon, delta):
    """The least noise of the Gaussian mechanism at sensitivity 1 (Balle & Wang, 2018), by bisection."""
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

"""An independent version of `imed_central`, in NumPy, and of blocks of plays with noisy totals."""

import math

import numpy as np

from tests.algorithms.bandits.golden_arms import largest


def relative_entropy(estimate, mean):
    with np.errstate(divide="ignore", invalid="ignore"):
        ones = np.where(estimate > 0, estimate * np.log(estimate / mean), 0)
        return ones + np.where(estimate < 1, (1 - estimate) * np.log((1 - estimate) / (1 - mean)), 0)


def divergence(estimate, mean, epsilon):
    """Computes the paper's divergence at its minimum: log odds of `between` are those of the mean less epsilon."""
    if epsilon == math.inf:
        return np.where(mean > estimate, relative_entropy(estimate, mean), 0)
    between = np.maximum(mean / (mean + (1 - mean) * math.exp(epsilon)), estimate)
    with np.errstate(invalid="ignore"):
        found = epsilon * (between - estimate) + relative_entropy(between, mean)
    return np.where(mean > estimate, found, 0)


def largest_mean(estimate, level, epsilon):
    low, high = estimate.copy(), np.ones_like(estimate)
    for _ in range(40):
        middle = (low + high) / 2
        fits = divergence(estimate, middle, epsilon) <= level
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return low


def play_blocks(generator, epsilon, *, means, horizon, lanes, growth, scores_of):
    """Plays blocks in all lanes; `scores_of` gets rounds [lanes, 1], plays and noisy sums [lanes, arms]."""
    num, rows, rounds = len(means), np.arange(lanes), np.zeros(lanes, int)
    plays, sums = np.zeros((lanes, num), int), np.zeros((lanes, num))
    for start in range(horizon):
        is_first = start < num
        arm = np.full(lanes, start) if is_first else largest(generator, scores_of(rounds[:, None], plays, sums))
        each = np.minimum(np.maximum(np.floor(growth * plays[rows, arm]), 1).astype(int), horizon - rounds)
        noise = generator.laplace(0, 1 / epsilon, lanes) if epsilon < math.inf else 0
        sums[rows, arm] += generator.binomial(each, means[arm]) + noise
        plays[rows, arm] += each
        rounds += each
        if np.all(rounds == horizon):
            break
    return plays


def imed_central(generator, epsilon, *, means, horizon, lanes, growth, index="imed"):
    def scores_of(rounds, plays, sums):
        estimates = np.clip(sums / plays, 0, 1)
        if index == "kl_ucb":
            return largest_mean(estimates, np.log(rounds + 1) / plays, epsilon)
        return -plays * divergence(estimates, estimates.max(1, keepdims=True), epsilon) - np.log(plays)

    return play_blocks(
        generator, epsilon, means=means, horizon=horizon, lanes=lanes, growth=growth, scores_of=scores_of
    )

"""Independent NumPy versions of the dueling algorithms, in float64, one lane at a time or all lanes side by side.

Each returns the regret of a preference matrix whose arm 0 is the Condorcet winner, the strong form, and how often both
arms of a duel were arm 0: [lanes] each.
"""

import math

import numpy as np


def _regret(matrix, left, right):
    return matrix[0, left] + matrix[0, right] - 1


def ebs_phased(generator, epsilon, *, matrix, horizon, failure_prob, multiplier, lanes):
    """Phases of balanced duels; wins plus Laplace(1 / epsilon); drop what is more than n D / 2 behind."""
    regrets, best = np.zeros(lanes), np.zeros(lanes)
    for lane in range(lanes):
        active, left_over, phase = list(range(len(matrix))), horizon, 0
        while left_over and len(active) > 1:
            phase += 1
            size, gap = len(active), 0.5**phase
            x = math.log(8 * size * phase**2 / failure_prob)
            duels = math.ceil(multiplier * max(32 * x / gap**2, 8 * x / (epsilon * gap)))
            duels = size * math.ceil(duels / size)
            wins = {i: sum(generator.binomial(duels // size, matrix[i, j]) for j in active) for i in active}
            played = [(active[r % size], active[r // size % size]) for r in range(min(left_over, size * size))]
            for place, (left, right) in enumerate(played):
                times = len(range(place, min(left_over, duels * size), size * size))
                regrets[lane] += times * _regret(matrix, left, right)
                best[lane] += times * (left == right == 0)
            left_over -= min(left_over, duels * size)
            noise = generator.laplace(0, 1 / epsilon, len(matrix)) if np.isfinite(epsilon) else np.zeros(len(matrix))
            noisy = {i: wins[i] + noise[i] for i in active}
            active = [i for i in active if max(noisy.values()) - noisy[i] <= duels * gap / 2]
        regrets[lane] += left_over * _regret(matrix, active[0], active[0])
        best[lane] += left_over * (active[0] == 0)
    return regrets, best


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


def ebs_local(generator, epsilon, *, matrix, horizon, failure_prob, multiplier, lanes):
    num, rows = len(matrix), np.arange(lanes)
    active, regrets, best = np.ones((lanes, num), bool), np.zeros(lanes), np.zeros(lanes)
    wins, plays = np.zeros((lanes, num, num)), np.zeros((lanes, num, num))
    spread = multiplier * math.sqrt(math.log(2 * num * horizon / failure_prob) / 2)
    for _ in range(horizon):
        n = (plays * active[:, None, :]).sum(2)
        left = np.where(active, n, np.inf).argmin(1)
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
        regrets += _regret(matrix, left, right)
        best += (left == 0) & (right == 0)
    return regrets, best


def rucb(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows = len(matrix), np.arange(lanes)
    wins, hypothesis = np.zeros((lanes, num, num)), np.full(lanes, -1)
    regrets, best = np.zeros(lanes), np.zeros(lanes)
    for t in range(1, horizon + 1):
        n = wins + wins.transpose(0, 2, 1)
        with np.errstate(divide="ignore", invalid="ignore"):
            debiased = (wins / n - 0.5) * _bias(epsilon) + 0.5
            upper = np.where(n > 0, debiased + _bias(epsilon) * np.sqrt(alpha * math.log(t) / n), 2.0)
        upper[:, np.arange(num), np.arange(num)] = 0.5
        champions = np.all(upper >= 0.5 - 1e-12, axis=2)
        left = np.zeros(lanes, int)
        for lane in rows:
            (those,) = np.nonzero(champions[lane])
            if hypothesis[lane] not in those:
                hypothesis[lane] = -1
            if len(those) == 0:
                left[lane] = generator.integers(num)
            elif len(those) == 1:
                left[lane] = hypothesis[lane] = those[0]
            elif hypothesis[lane] < 0:
                left[lane] = generator.choice(those)
            elif generator.random() < 0.5:
                left[lane] = hypothesis[lane]
            else:
                left[lane] = generator.choice(those[those != hypothesis[lane]])
        against = upper[rows, :, left]
        tied = against >= against.max(1, keepdims=True) - 1e-12
        tied[rows[tied.sum(1) > 1], left[tied.sum(1) > 1]] = False
        right = _pick(generator, tied)
        said = _reports(generator, epsilon, matrix[left, right])
        wins[rows, left, right] += said
        wins[rows, right, left] += 1 - said
        regrets += _regret(matrix, left, right)
        best += (left == 0) & (right == 0)
    return regrets, best


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
    totals = [np.zeros((lanes, num)), np.zeros((lanes, num))]
    regrets, best = np.zeros(lanes), np.zeros(lanes)
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
        regrets += _regret(matrix, left, right)
        best += (left == 0) & (right == 0)
    return regrets, best


def double_thompson(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows = len(matrix), np.arange(lanes)
    wins, regrets, best = np.zeros((lanes, num, num)), np.zeros(lanes), np.zeros(lanes)
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
        regrets += _regret(matrix, left, right)
        best += (left == 0) & (right == 0)
    return regrets, best

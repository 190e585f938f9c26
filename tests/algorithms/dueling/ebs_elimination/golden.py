"""Independent NumPy version of elimination by effective Borda scores.

Written from the docstrings and the papers, in float64, one lane and one round at a time; trees of noise are explicit,
and nodes are combined by the recursion for least squares.
"""

import functools
import math
from statistics import NormalDist

import numpy as np

from tests.algorithms.dueling.golden_duels import Played, gaussian_stddev


class NoisyTree:
    """Noise of scale 1 for every node of a tree over a stream; prefixes are sums of whole blocks."""

    def __init__(self, draw, arity, levels, combine):
        self.draw, self.arity, self.levels, self.combine = draw, arity, levels, combine
        self.known = {}

    def weight(self, level):
        if level == 0 or not self.combine:
            return 1.0
        return 1 / (1 + 1 / (self.arity * self.weight(level - 1)))

    def block(self, level, index):
        """Returns the error of the best estimate of a block."""
        if (level, index) not in self.known:
            error = self.draw()
            if level and self.combine:
                inside = sum(self.block(level - 1, index * self.arity + child) for child in range(self.arity))
                error = self.weight(level) * error + (1 - self.weight(level)) * inside
            self.known[level, index] = error
        return self.known[level, index]

    def prefix(self, length):
        error, start = 0.0, 0
        for level in reversed(range(self.levels)):
            size = self.arity**level
            for _ in range((length - start) // size):
                error += self.block(level, start // size)
                start += size
        return error


@functools.cache
def radii_of_noise(arity, levels, share, is_gaussian):
    """Returns Chernoff's bound for all clocks, at the best of a few rates, when half of the leaves are full."""
    weights = [1.0]
    for _ in range(1, levels):
        weights.append(1 / (1 + 1 / (arity * weights[-1])))
    typical = [[arity / 2 if level <= top else 0 for level in range(levels)] for top in range(levels)]
    typical.append([arity - 1] * levels)

    def cumulant(level, rates):
        total = -np.log1p(-np.square(rates * weights[level]))
        return total + (arity * cumulant(level - 1, rates * (1 - weights[level])) if level else 0)

    if is_gaussian:  # tangents of the quantile, as a function of the variance; a block's is its weight
        quantile = NormalDist().inv_cdf(1 - share)
        deviations = [math.sqrt(np.dot(digits, weights)) for digits in typical]
        lines = [(quantile * each / 2, quantile * np.asarray(weights) / (2 * each)) for each in deviations]
    else:
        budget, rates = -math.log(share), np.linspace(0, 1, 20_001)[1:-1]
        table = np.stack([cumulant(level, rates) for level in range(levels)])
        chosen = [((budget + np.dot(digits, table)) / rates).argmin() for digits in typical]
        lines = [(budget / rates[place], table[:, place] / rates[place]) for place in chosen]

    @functools.cache
    def radius(clock):
        digits = np.asarray([clock // arity**level % arity for level in range(levels)])
        half = np.concatenate([[arity // 2], digits[1:]])
        base, slopes = min(lines, key=lambda line: line[0] + half @ line[1])
        return base + digits @ slopes

    return radius


_stddev = functools.cache(gaussian_stddev)


@functools.cache
def score_radius(num_arms, size, horizon, failure_prob):
    events = num_arms * (num_arms - 1) * math.comb(num_arms - 1, size - 1) / failure_prob
    best = math.inf
    for epochs in range(1, 100):
        ratio = horizon ** (1 / epochs)
        best = min(best, (ratio**0.25 + ratio**-0.25) / 2 * math.sqrt(math.log(epochs * events) / 2))
    return best


def ebs_elimination(
    generator, epsilon, *, matrix, horizon, looks, failure_prob, multiplier, constants, arity, lanes, delta=None
):
    """Plays elimination with one tree of noise for each arm, in each lane.

    The noise is Gaussian if there is a delta.
    """
    one = functools.partial(
        _one_lane, generator, epsilon, delta, matrix, horizon, looks, failure_prob, multiplier, constants, arity
    )
    duels, active = zip(*(one() for _ in range(lanes)), strict=True)
    return Played(np.asarray(duels), np.asarray(active))


def _one_lane(generator, epsilon, delta, matrix, horizon, looks, failure_prob, multiplier, constants, arity):
    num, entries = len(matrix), horizon + len(matrix)
    levels = 0
    while arity**levels <= entries:
        levels += 1
    if delta is None:  # an outcome and its negative, each in a node of every level
        scale, draw = 2 * levels / epsilon, generator.laplace
    else:
        scale, draw = _stddev(epsilon, delta) * math.sqrt(2 * levels), generator.standard_normal
    trees = [NoisyTree(draw, arity, levels, constants == "tight") for _ in range(num)]
    radius = radii_of_noise(arity, levels, failure_prob / (2 * num * entries), delta is not None)
    events = math.log(num * horizon / failure_prob)
    streams = [[] for _ in range(num)]
    wins, plays, duels = np.zeros((num, num)), np.zeros((num, num)), np.zeros((num, num), int)
    active, kept, removed, order = list(range(num)), [], [], generator.permutation(num)
    for t in range(1, horizon + 1):
        left = min(active, key=lambda i: (sum(plays[i, j] for j in active), order[i]))
        right = active[generator.integers(len(active))]
        won = int(generator.random() < matrix[left, right])
        duels[left, right] += 1
        if len(active) > 1:
            for i in active if removed else []:
                streams[i].append(-sum(wins[i, j] for j in removed))
            removed = []
            wins[left, right] += won
            plays[left, right] += 1
            streams[left].append(won)
            low, high = {}, {}
            for i in active:
                n = sum(plays[i, j] for j in active)
                if n == 0:
                    low[i], high[i] = -math.inf, math.inf
                    continue
                share = (sum(streams[i]) + scale * trees[i].prefix(len(streams[i]))) / n
                if constants == "tight":
                    spread = score_radius(num, len(active), horizon, failure_prob / 2) * math.sqrt(n)
                    spread += scale * radius(len(streams[i]))
                else:
                    spread = math.sqrt(events * n) + 16 * events * math.log(horizon) ** 2.5 / epsilon
                low[i], high[i] = share - multiplier * spread / n, share + multiplier * spread / n
            removed = [i for i in active if high[i] < max(low.values())]
            active = [i for i in active if i not in removed]
        if t in looks:
            kept.append([i in active for i in range(num)])
    return duels, kept

"""Independent NumPy versions of RUCB and double Thompson sampling by blocks, in float64, all lanes side by side.

Written from the docstrings and not from the JAX code: every pair has a list of blocks, and all sums are made anew.
"""

import math

import numpy as np

from tests.golden.numpy_duels import Played


class Book:
    """What a curator has counted, for one lane and pair: outcomes of the lower arm, and noisy totals of blocks."""

    def __init__(self, lanes, num):
        self.open = np.zeros((lanes, num, num), int)
        self.duels = np.zeros((lanes, num, num), int)
        self.blocks = []  # (wins with noise, duels) of each block of a pair, [lanes, num, num] each

    def add(self, generator, epsilon, left, right, won):
        rows = np.arange(len(left))
        low, high = np.minimum(left, right), np.maximum(left, right)
        self.open[rows, low, high] += np.where(left <= right, won, 1 - won)
        self.duels[rows, low, high] += 1
        count = self.duels[rows, low, high]
        done = (2 ** np.floor(np.log2(count)) == count) & (low != high)
        for lane in np.flatnonzero(done):
            place = (lane, low[lane], high[lane])
            index = int(math.log2(count[lane]))
            while len(self.blocks) <= index:
                self.blocks.append((np.zeros(self.open.shape), np.zeros(self.open.shape)))
            noise = 0.0 if epsilon == math.inf else generator.laplace(0, 1 / epsilon)
            self.blocks[index][0][place] = self.open[place] + noise
            self.blocks[index][1][place] = 1 if index == 0 else 2 ** (index - 1)
            self.open[place] = 0

    def known(self, epsilon):
        """Weighted wins and duels of row against column, and the weight of the last block: [lanes, num, num]."""
        shape = self.open.shape
        wins, duels, last = np.zeros(shape), np.zeros(shape), np.zeros(shape)
        for noisy, length in self.blocks:
            variance = length / 4 + (0 if epsilon == math.inf else 2 / epsilon**2)
            weight = np.where(length > 0, length / 4 / np.where(variance > 0, variance, 1), 0)
            wins += weight * noisy
            duels += weight * length
            last = np.where(length > 0, weight, last)
        below = np.tril(np.ones(shape[1:], bool), -1)
        flipped, total, final = (np.swapaxes(each, 1, 2) for each in (wins, duels, last))
        return np.where(below, total - flipped, wins), duels + total, last + final


def _bounds(book, epsilon, alpha, t):
    """Shares, and how far bounds are from them, [lanes, num, num]; NaN where nothing is known."""
    wins, duels, last = book.known(epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(duels > 0, wins / duels, np.nan)
        tail = 2 * alpha * math.log(t)  # minus the logarithm of the failure probability
        variance = duels / 4
        radius = (np.sqrt(2 * variance * tail) + last / epsilon * tail) / np.where(duels > 0, duels, np.nan)
    return share, radius, duels


def _pick(generator, allowed):
    return np.argmax(np.where(allowed, generator.random(allowed.shape), -1), axis=1)


def rucb_blocks(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows, every = len(matrix), np.arange(lanes), np.arange(len(matrix))
    book, played, hypothesis = Book(lanes, num), np.zeros((lanes, num, num), int), np.full(lanes, -1)
    for t in range(1, horizon + 1):
        share, radius, duels = _bounds(book, epsilon, alpha, t)
        upper = np.where(duels > 0, share + radius, 2.0)
        upper[:, every, every] = 0.5
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
        book.add(generator, epsilon, left, right, (generator.random(lanes) < matrix[left, right]).astype(int))
        played[rows, left, right] += 1
    return Played(played)


def double_thompson_blocks(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows = len(matrix), np.arange(lanes)
    book, played = Book(lanes, num), np.zeros((lanes, num, num), int)
    other = ~np.eye(num, dtype=bool)
    for t in range(1, horizon + 1):
        share, radius, duels = _bounds(book, epsilon, alpha, t)
        upper = np.where(duels > 0, share + radius, 2.0)
        lower = np.where(duels > 0, share - radius, -1.0)
        scores = ((upper > 0.5 + 1e-12) & other).sum(2)
        kept = np.where(duels > 0, np.clip(share, 0, 1), 0.5)
        first, second = 1 + duels * kept, 1 + duels * (1 - kept)
        theta = generator.beta(first, second)
        theta = np.triu(theta, 1) + np.tril(1 - theta.transpose(0, 2, 1), -1)
        copeland = ((theta > 0.5) & other).sum(2)
        copeland = np.where(scores == scores.max(1, keepdims=True), copeland, -1)
        left = _pick(generator, copeland == copeland.max(1, keepdims=True))
        rival = generator.beta(first[rows, :, left], second[rows, :, left])
        rival[rows, left] = 0.5
        allowed = lower[rows, :, left] <= 0.5 + 1e-12
        allowed[rows, left] = True
        right = np.where(allowed, rival, -1).argmax(1)
        book.add(generator, epsilon, left, right, (generator.random(lanes) < matrix[left, right]).astype(int))
        played[rows, left, right] += 1
    return Played(played)

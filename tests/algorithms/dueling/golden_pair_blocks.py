"""Independent NumPy versions of RUCB and double Thompson sampling by blocks, in float64, all lanes side by side.

They are written from the docstrings, not from the JAX code: every pair has a list of blocks, and all sums are computed
again each time.
"""

import math

import numpy as np


class Book:
    """A curator's counts for one lane and pair: outcomes of the lower arm, and noisy totals of blocks."""

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
        """Returns weighted wins and duels of row against column, and the weight of the last block: [lanes, num,
        num].
        """
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


def bounds(book, epsilon, alpha, t):
    """Returns shares, and the distance of bounds from them, [lanes, num, num]; NaN where nothing is known."""
    wins, duels, last = book.known(epsilon)
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.where(duels > 0, wins / duels, np.nan)
        tail = 2 * alpha * math.log(t)  # minus the logarithm of the failure probability
        variance = duels / 4
        radius = (np.sqrt(2 * variance * tail) + last / epsilon * tail) / np.where(duels > 0, duels, np.nan)
    return share, radius, duels


def pick(generator, allowed):
    return np.argmax(np.where(allowed, generator.random(allowed.shape), -1), axis=1)

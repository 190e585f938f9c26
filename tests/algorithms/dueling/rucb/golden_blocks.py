"""An independent version of `rucb` by blocks, in NumPy."""

import numpy as np

from tests.algorithms.dueling.golden_duels import Played
from tests.algorithms.dueling.golden_pair_blocks import Book, bounds, pick


def rucb_blocks(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows, every = len(matrix), np.arange(lanes), np.arange(len(matrix))
    book, played, hypothesis = Book(lanes, num), np.zeros((lanes, num, num), int), np.full(lanes, -1)
    for t in range(1, horizon + 1):
        share, radius, duels = bounds(book, epsilon, alpha, t)
        upper = np.where(duels > 0, share + radius, 2.0)
        upper[:, every, every] = 0.5
        champions = np.all(upper >= 0.5 - 1e-12, axis=2)
        count = champions.sum(1)
        hypothesis = np.where((champions & (every == hypothesis[:, None])).any(1), hypothesis, -1)
        hypothesis = np.where(count == 1, champions.argmax(1), hypothesis)
        left = pick(generator, champions | (count == 0)[:, None])
        rest = pick(generator, champions & (every != hypothesis[:, None]))
        halves = np.where(generator.random(lanes) < 0.5, hypothesis, rest)
        left = np.where((count > 1) & (hypothesis >= 0), halves, left)
        against = upper[rows, :, left]
        tied = against >= against.max(1, keepdims=True) - 1e-12
        tied[rows[tied.sum(1) > 1], left[tied.sum(1) > 1]] = False
        right = pick(generator, tied)
        book.add(generator, epsilon, left, right, (generator.random(lanes) < matrix[left, right]).astype(int))
        played[rows, left, right] += 1
    return Played(played)

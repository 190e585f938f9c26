"""An independent version of `double_thompson` by blocks, in NumPy."""

import numpy as np

from tests.algorithms.dueling.golden_duels import Played
from tests.algorithms.dueling.golden_pair_blocks import Book, bounds, pick


def double_thompson_blocks(generator, epsilon, *, matrix, horizon, alpha, lanes):
    num, rows = len(matrix), np.arange(lanes)
    book, played = Book(lanes, num), np.zeros((lanes, num, num), int)
    other = ~np.eye(num, dtype=bool)
    for t in range(1, horizon + 1):
        share, radius, duels = bounds(book, epsilon, alpha, t)
        upper = np.where(duels > 0, share + radius, 2.0)
        lower = np.where(duels > 0, share - radius, -1.0)
        scores = ((upper > 0.5 + 1e-12) & other).sum(2)
        kept = np.where(duels > 0, np.clip(share, 0, 1), 0.5)
        first, second = 1 + duels * kept, 1 + duels * (1 - kept)
        theta = generator.beta(first, second)
        theta = np.triu(theta, 1) + np.tril(1 - theta.transpose(0, 2, 1), -1)
        copeland = ((theta > 0.5) & other).sum(2)
        copeland = np.where(scores == scores.max(1, keepdims=True), copeland, -1)
        left = pick(generator, copeland == copeland.max(1, keepdims=True))
        rival = generator.beta(first[rows, :, left], second[rows, :, left])
        rival[rows, left] = 0.5
        allowed = lower[rows, :, left] <= 0.5 + 1e-12
        allowed[rows, left] = True
        right = np.where(allowed, rival, -1).argmax(1)
        book.add(generator, epsilon, left, right, (generator.random(lanes) < matrix[left, right]).astype(int))
        played[rows, left, right] += 1
    return Played(played)

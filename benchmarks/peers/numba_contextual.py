"""Peers of contextual linear bandits, as good engineers write them: one scalar fastmath float32 loop a lane, parallel.

Each fills regret [lanes] with the pseudo-regret on contexts that are uniform in a cube, with uniform noise on rewards.
Words are xoroshiro128+'s, two uniforms a word; normal variates are Marsaglia and Tsang's ziggurat. Arms are the fast
axis of the triangular solve, so that the compiler makes vector instructions.
"""

import math

import numpy as np
from numba import njit, prange

from benchmarks.peers.numba_words import following, normal, seeded

ZERO, ONE, TWO, HALF = np.float32(0), np.float32(1), np.float32(2), np.float32(0.5)
SCALE, LOW, HIGH = np.float32(2.0**-32), np.uint64(0xFFFFFFFF), np.uint64(32)


@njit(fastmath=True, inline="always")
def model_of(first, second, theta_norm, theta):  # pragma: no cover  compiled
    """Fills the true model, uniform on a sphere."""
    size = ZERO
    for i in range(len(theta)):
        first, second, word = following(first, second)
        first, second, theta[i] = normal(first, second, word)
        size += theta[i] * theta[i]
    for i in range(len(theta)):
        theta[i] *= theta_norm / np.float32(math.sqrt(size))
    return first, second


@njit(fastmath=True, inline="always")
def draw_contexts(first, second, side, contexts):  # pragma: no cover  compiled
    """Fills contexts [dim, arms], an even number of them, with uniforms of [-side, side]."""
    flat = contexts.reshape(-1)
    for i in range(0, len(flat), 2):
        first, second, word = following(first, second)
        flat[i] = side * (TWO * SCALE * np.float32(word & LOW) - ONE)
        flat[i + 1] = side * (TWO * SCALE * np.float32(word >> HIGH) - ONE)
    return first, second


@njit(fastmath=True, inline="always")
def best_arm(lower, model, width, contexts, work, squares, means):  # pragma: no cover  compiled
    """Returns the arm with the largest upper bound; `lower` has inverses on its diagonal."""
    dim, num = contexts.shape
    for k in range(num):
        squares[k] = ZERO
        means[k] = ZERO
    for i in range(dim):
        for k in range(num):
            work[i, k] = contexts[i, k]
        for j in range(i):
            entry = lower[i, j]
            for k in range(num):
                work[i, k] -= entry * work[j, k]
        inverse, theta = lower[i, i], model[i]
        for k in range(num):
            value = work[i, k] * inverse
            work[i, k] = value
            squares[k] += value * value
            means[k] += theta * contexts[i, k]
    for k in range(num):
        means[k] += width * np.float32(math.sqrt(squares[k]))
    best = 0
    for k in range(1, num):
        if means[k] > means[best]:
            best = k
    return best


@njit(fastmath=True, inline="always")
def solve(matrix, shift, cross, lower, model):  # pragma: no cover  compiled
    """Computes the Cholesky factor of matrix + shift I, with inverses on its diagonal, and the model.

    Rows are contiguous.
    """
    dim = len(cross)
    for i in range(dim):
        for j in range(i + 1):
            total = matrix[i, j] + (shift if i == j else ZERO)
            for k in range(j):
                total -= lower[i, k] * lower[j, k]
            if i == j:
                lower[i, i] = ONE / np.float32(math.sqrt(total))
            else:
                lower[i, j] = total * lower[j, j]
    for i in range(dim):
        total = cross[i]
        for j in range(i):
            total -= lower[i, j] * model[j]
        model[i] = total * lower[i, i]
    for i in range(dim - 1, -1, -1):
        model[i] *= lower[i, i]
        for j in range(i):
            model[j] -= lower[i, j] * model[i]


@njit(fastmath=True, inline="always")
def paid(contexts, theta, arm):  # pragma: no cover  compiled
    """Returns the mean of an arm, and how far it is behind the best."""
    dim, num = contexts.shape
    largest, own = np.float32(-1e9), ZERO
    for k in range(num):
        total = ZERO
        for i in range(dim):
            total += contexts[i, k] * theta[i]
        largest = max(largest, total)
        own = total if k == arm else own
    return own, largest - own


@njit(fastmath=True, inline="always")
def is_due(t, solved, every):  # pragma: no cover  compiled
    """Returns whether the model is solved for after t rounds."""
    return t >= solved + every


@njit(parallel=True, fastmath=True)
def linear_ucb(num, stddev, bounds, widths, every, theta_norm, noise, horizon, regret):  # pragma: no cover  compiled
    """Plays under local privacy: bounds and widths [horizon + 1] of the ellipsoid after so many rounds."""
    dim = num[1]
    side, stddev, root = np.float32(1 / math.sqrt(dim)), np.float32(stddev), np.float32(stddev / math.sqrt(2))
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        theta, model, cross = np.zeros(dim, np.float32), np.zeros(dim, np.float32), np.zeros(dim, np.float32)
        matrix, lower = np.zeros((dim, dim), np.float32), np.zeros((dim, dim), np.float32)
        contexts, work = np.zeros((dim, num[0]), np.float32), np.zeros((dim, num[0]), np.float32)
        squares, means = np.zeros(num[0], np.float32), np.zeros(num[0], np.float32)
        first, second = model_of(first, second, theta_norm, theta)
        solve(matrix, np.float32(2 * bounds[0]), cross, lower, model)
        solved, width, lost = 0, np.float32(widths[0]), 0.0
        for t in range(1, horizon + 1):
            first, second = draw_contexts(first, second, side, contexts)
            arm = best_arm(lower, model, width, contexts, work, squares, means)
            own, gap = paid(contexts, theta, arm)
            lost += gap
            first, second, word = following(first, second)
            y = own + np.float32(noise) * (TWO * SCALE * np.float32(word & LOW) - ONE)
            y = min(max(y, -ONE), ONE)
            for i in range(dim):
                x = contexts[i, arm]
                for j in range(i + 1):
                    first, second, word = following(first, second)
                    first, second, drawn = normal(first, second, word)
                    matrix[i, j] += x * contexts[j, arm] + (stddev if i == j else root) * drawn
                first, second, word = following(first, second)
                first, second, drawn = normal(first, second, word)
                cross[i] += x * y + stddev * drawn
            if is_due(t, solved, every):
                solve(matrix, np.float32(2 * bounds[t]), cross, lower, model)
                solved, width = t, np.float32(widths[t])
        regret[lane] = lost


@njit(parallel=True, fastmath=True)
def generalized_linear(
    num, stddev, residual, rate, bounds, widths, every, theta_norm, horizon, regret
):  # pragma: no cover  compiled
    """Plays a logistic model, local privacy, rewards of 0 and 1: labels are predictions of noisy gradient descent."""
    dim = num[1]
    side, stddev, root = np.float32(1 / math.sqrt(dim)), np.float32(stddev), np.float32(stddev / math.sqrt(2))
    spread, rate = np.float32(stddev * residual), np.float32(rate)
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        theta, model, cross = np.zeros(dim, np.float32), np.zeros(dim, np.float32), np.zeros(dim, np.float32)
        matrix, lower = np.zeros((dim, dim), np.float32), np.zeros((dim, dim), np.float32)
        contexts, work = np.zeros((dim, num[0]), np.float32), np.zeros((dim, num[0]), np.float32)
        squares, means = np.zeros(num[0], np.float32), np.zeros(num[0], np.float32)
        iterate, labelled = np.zeros(dim, np.float32), np.zeros(dim, np.float32)
        first, second = model_of(first, second, theta_norm, theta)
        solve(matrix, np.float32(2 * bounds[0]), cross, lower, model)
        solved, width, lost = 0, np.float32(widths[0]), 0.0
        for t in range(1, horizon + 1):
            first, second = draw_contexts(first, second, side, contexts)
            arm = best_arm(lower, model, width, contexts, work, squares, means)
            own, gap = paid(contexts, theta, arm)
            chance = ONE / (ONE + np.float32(math.exp(-own)))
            lost += ONE / (ONE + np.float32(math.exp(-own - gap))) - chance
            first, second, word = following(first, second)
            y = ONE if SCALE * np.float32(word & LOW) < chance else ZERO
            predicted = ZERO
            for i in range(dim):
                predicted += contexts[i, arm] * iterate[i]
                labelled[i] = ZERO
            r = ONE / (ONE + np.float32(math.exp(-predicted))) - y
            size = ZERO
            for i in range(dim):
                x = contexts[i, arm]
                for j in range(i + 1):
                    first, second, word = following(first, second)
                    first, second, drawn = normal(first, second, word)
                    told = x * contexts[j, arm] + (stddev if i == j else root) * drawn
                    matrix[i, j] += told
                    labelled[i] += told * iterate[j]
                    if i != j:
                        labelled[j] += told * iterate[i]
            for i in range(dim):
                cross[i] += labelled[i]
                first, second, word = following(first, second)
                first, second, drawn = normal(first, second, word)
                iterate[i] -= rate * (r * contexts[i, arm] + spread * drawn)
                size += iterate[i] * iterate[i]
            back = ONE / max(ONE, np.float32(math.sqrt(size)))
            for i in range(dim):
                iterate[i] *= back
            if is_due(t, solved, every):
                solve(matrix, np.float32(2 * bounds[t]), cross, lower, model)
                solved, width = t, np.float32(widths[t])
        regret[lane] = lost


@njit(parallel=True, fastmath=True)
def linear_ucb_joint(
    num, stddev, gaps, weights, bounds, widths, every, theta_norm, noise, horizon, regret
):  # pragma: no cover  compiled
    """Plays under joint privacy: leaky sums of noise, read where the model is solved for."""
    dim, leaks = num[1], len(gaps)
    entries = dim * (dim + 3) // 2
    side, stddev, off = np.float32(1 / math.sqrt(dim)), np.float32(stddev), np.float32(math.sqrt(0.5))
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        theta, model, cross = np.zeros(dim, np.float32), np.zeros(dim, np.float32), np.zeros(dim, np.float32)
        matrix, lower = np.zeros((dim, dim), np.float32), np.zeros((dim, dim), np.float32)
        shown, vector = np.zeros((dim, dim), np.float32), np.zeros(dim, np.float32)
        contexts, work = np.zeros((dim, num[0]), np.float32), np.zeros((dim, num[0]), np.float32)
        squares, means = np.zeros(num[0], np.float32), np.zeros(num[0], np.float32)
        drawn, sums, total = np.zeros(entries, np.float32), np.zeros((leaks, entries), np.float32), np.zeros(entries)
        first, second = model_of(first, second, theta_norm, theta)
        solve(matrix, np.float32(2 * bounds[0]), cross, lower, model)
        solved, width, lost = 0, np.float32(widths[0]), 0.0
        for t in range(1, horizon + 1):
            first, second = draw_contexts(first, second, side, contexts)
            arm = best_arm(lower, model, width, contexts, work, squares, means)
            own, gap = paid(contexts, theta, arm)
            lost += gap
            first, second, word = following(first, second)
            y = own + np.float32(noise) * (TWO * SCALE * np.float32(word & LOW) - ONE)
            y = min(max(y, -ONE), ONE)
            for i in range(dim):
                x = contexts[i, arm]
                for j in range(i + 1):
                    matrix[i, j] += x * contexts[j, arm]
                cross[i] += x * y
            for e in range(entries):
                first, second, word = following(first, second)
                first, second, drawn[e] = normal(first, second, word)
            for b in range(leaks):
                keep = ONE - gaps[b]
                for e in range(entries):
                    sums[b, e] = keep * sums[b, e] + drawn[e]
            if is_due(t, solved, every):
                for e in range(entries):
                    total[e] = ZERO
                for b in range(leaks):
                    weight = stddev * weights[b]
                    for e in range(entries):
                        total[e] += weight * sums[b, e]
                e = 0
                for i in range(dim):
                    for j in range(i + 1):
                        shown[i, j] = matrix[i, j] + np.float32(total[e]) * (ONE if i == j else off)
                        e += 1
                    vector[i] = cross[i] + np.float32(total[entries - dim + i])
                solve(shown, np.float32(2 * bounds[t]), vector, lower, model)
                solved, width = t, np.float32(widths[t])
        regret[lane] = lost


@njit(parallel=True, fastmath=True)
def normals(count, rounds, sums):  # pragma: no cover  compiled
    """Fills sums [lanes] with sums of normal variates."""
    for lane in prange(sums.shape[0]):
        first, second = seeded(lane)
        total = ZERO
        for _ in range(rounds):
            for _ in range(count):
                first, second, word = following(first, second)
                first, second, drawn = normal(first, second, word)
                total += drawn
        sums[lane] = total

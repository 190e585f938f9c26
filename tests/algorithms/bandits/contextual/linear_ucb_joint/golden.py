"""A NumPy version of linear UCB under joint privacy, written from the papers, for many lanes at once.

It shares no code with the library. The Toeplitz counter is the exact square root; the library's is within 1% of it.
"""

import math

import numpy as np
from scipy.signal import fftconvolve

from tests.algorithms.bandits.contextual.golden_reports import analytic_gaussian, unit_vectors


def toeplitz_noise(generator, lanes, entries, horizon, epsilon, delta):
    """Draws noise of all prefix sums, [horizon, lanes, entries], and returns its standard deviation, [horizon]."""
    steps = np.arange(1, horizon)
    root = np.concatenate([[1.0], np.cumprod((2 * steps - 1) / (2 * steps))])
    squares = np.cumsum(root**2)
    stddev = analytic_gaussian(epsilon, delta, math.sqrt(4.5 * squares[-1]))
    drawn = generator.normal(size=(horizon, lanes * entries))
    noise = fftconvolve(drawn, root[:, None], axes=0)[:horizon] * stddev
    return noise.reshape(horizon, lanes, entries), stddev * np.sqrt(squares)


def tree_noise(generator, lanes, entries, horizon, epsilon, delta):
    """Draws the same for a binary tree; each block is combined with the blocks inside it, bottom up."""
    levels = horizon.bit_length()
    weights = [1.0]
    for _ in range(1, levels):
        weights.append(1 / (1 + 1 / (2 * weights[-1])))
    stddev = analytic_gaussian(epsilon, delta, math.sqrt(4.5 * levels))
    blocks, noise, spread = {}, np.zeros((horizon, lanes, entries)), np.zeros(horizon)
    for t in range(1, horizon + 1):
        for h in range(levels):
            if t % 2**h == 0:
                error = stddev * generator.normal(size=(lanes, entries))
                if h:
                    inside = blocks.pop((h - 1, t - 2 ** (h - 1))) + blocks.pop((h - 1, t))
                    error = weights[h] * error + (1 - weights[h]) * inside
                blocks[h, t] = error
        end = 0
        for h in reversed(range(levels)):
            if t >> h & 1:
                end += 2**h
                noise[t - 1] += blocks[h, end]
                spread[t - 1] += weights[h]
    return noise, stddev * np.sqrt(spread)


def linear_ucb_joint(generator, lanes, *, dim, num_arms, horizon, epsilon, delta, counter, failure_prob=0.05):
    """Returns regret and |theta~ - theta*|_V / beta after the whole horizon, on the problem of `linear_ucb`."""
    theta = np.zeros(dim)
    theta[0] = 0.5
    rows, columns = np.triu_indices(dim, 1)
    entries, off = dim * (dim + 3) // 2, dim * (dim + 1) // 2
    log_term = math.log(6 * horizon / failure_prob)
    noise, spread = np.zeros((horizon, 1, entries)), np.zeros(horizon)
    if math.isfinite(epsilon):
        draw = {"toeplitz": toeplitz_noise, "tree": tree_noise}[counter]
        noise, spread = draw(generator, lanes, entries, horizon, epsilon, delta)
    outer, cross, regret = np.zeros((lanes, dim, dim)), np.zeros((lanes, dim)), np.zeros(lanes)
    for t in range(horizon + 1):
        shown, vector, now = outer.copy(), cross.copy(), 0.0
        if t:
            added, now = noise[t - 1], spread[t - 1]
            shown[:, np.arange(dim), np.arange(dim)] += added[:, :dim]
            shown[:, rows, columns] += added[:, dim:off] / math.sqrt(2)
            shown[:, columns, rows] += added[:, dim:off] / math.sqrt(2)
            vector += added[:, off:]
        bound = max(1.0, now * (math.sqrt(2 * dim) + math.sqrt(2 * log_term)))
        shifted = shown + 2 * bound * np.eye(dim)
        inverse = np.linalg.inv(shifted)
        centre = np.einsum("lij,lj->li", inverse, vector)
        width = math.sqrt(3 * bound) + now * (math.sqrt(dim) + math.sqrt(2 * log_term)) / math.sqrt(bound)
        width += math.sqrt(2 * log_term + dim * math.log(1 + t / (dim * bound)))
        if t == horizon:
            apart = centre - theta
            return regret, np.sqrt(np.einsum("li,lij,lj->l", apart, shifted, apart)) / width
        contexts = unit_vectors(generator, lanes, num_arms, dim)
        squares = np.einsum("lki,lij,lkj->lk", contexts, inverse, contexts)
        arms = np.argmax(np.einsum("lki,li->lk", contexts, centre) + width * np.sqrt(squares), axis=1)
        x = contexts[np.arange(lanes), arms]
        regret += (contexts @ theta).max(axis=1) - x @ theta
        y = np.clip(x @ theta + generator.uniform(-0.5, 0.5, lanes), -1, 1)
        outer += x[:, :, None] * x[:, None, :]
        cross += y[:, None] * x
    raise AssertionError("the last round returns")

"""Peers of learners that track experts, as a good engineer writes them: one scalar fastmath float32 loop per lane.

Each fills regret [lanes] with the regret in means. Losses are 0 or 1; segments are equal, and each has another good
expert. Random words are xoroshiro128+'s, two losses a word; normal variates are Marsaglia and Tsang's ziggurat.
"""

import math

import numpy as np
from numba import njit, prange

from benchmarks.peers.numba_words import following, normal, seeded, uniform

ZERO, ONE, TINY = np.float32(0), np.float32(1), np.float32(2.0**-24)
LOW, HIGH = np.uint64(0xFFFFFFFF), np.uint64(32)


@njit(fastmath=True, inline="always")
def draw_losses(first, second, limits, losses):  # pragma: no cover  compiled
    """Fills losses, an even number of them."""
    for i in range(0, len(losses), 2):
        first, second, word = following(first, second)
        losses[i] = ONE if (word & LOW) < limits[i] else ZERO
        losses[i + 1] = ONE if (word >> HIGH) < limits[i + 1] else ZERO
    return first, second


@njit(fastmath=True, inline="always")
def shifted(first, second, good, means, limits):  # pragma: no cover  compiled
    """Returns another good expert, means = (good one's, others')."""
    first, second, word = following(first, second)
    num = len(limits)
    if good < 0:
        good = int(uniform(word) * np.float32(num))
    else:
        good = (good + 1 + int(uniform(word) * np.float32(num - 1))) % num
    for i in range(num):
        limits[i] = np.uint64((means[0] if i == good else means[1]) * 4294967296.0)
    return first, second, good


@njit(fastmath=True, inline="always")
def drawn(threshold, weights):  # pragma: no cover  compiled
    """Draws an index by inversion."""
    index, so_far = 0, weights[0]
    while so_far <= threshold and index < len(weights) - 1:
        index += 1
        so_far += weights[index]
    return index


@njit(parallel=True, fastmath=True)
def hedge(num, means, segment, horizon, rate, regret):  # pragma: no cover  compiled
    """Plays exponential weights on total losses."""
    rate = np.float32(rate)
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        losses, limits = np.zeros(num, np.float32), np.zeros(num, np.uint64)
        totals, weights = np.zeros(num, np.float32), np.zeros(num, np.float32)
        good, paid = -1, 0
        for t in range(horizon):
            if t % segment == 0:
                first, second, good = shifted(first, second, good, means, limits)
            smallest = totals[0]
            for i in range(1, num):
                smallest = min(smallest, totals[i])
            mass = ZERO
            for i in range(num):
                weights[i] = math.exp(-rate * (totals[i] - smallest))
                mass += weights[i]
            first, second, word = following(first, second)
            paid += drawn(uniform(word) * mass, weights) != good
            first, second = draw_losses(first, second, limits, losses)
            for i in range(num):
                totals[i] += losses[i]
        regret[lane] = paid * (means[1] - means[0])


@njit(parallel=True, fastmath=True)
def fixed_share(num, means, segment, horizon, rate, switch_rate, regret):  # pragma: no cover  compiled
    """Plays fixed share. With a fresh draw each round it is `mirror_descent`, too."""
    rate, stays, comes = np.float32(rate), np.float32(1 - switch_rate), np.float32(switch_rate / (num - 1))
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        losses, limits = np.zeros(num, np.float32), np.zeros(num, np.uint64)
        shares = np.full(num, np.float32(1 / num))
        good, paid = -1, 0
        for t in range(horizon):
            if t % segment == 0:
                first, second, good = shifted(first, second, good, means, limits)
            first, second, word = following(first, second)
            paid += drawn(uniform(word), shares) != good
            first, second = draw_losses(first, second, limits, losses)
            mass = ZERO
            for i in range(num):
                shares[i] *= math.exp(-rate * losses[i])
                mass += shares[i]
            scale = ONE / mass
            for i in range(num):
                kept = shares[i] * scale
                shares[i] = stays * kept + comes * (ONE - kept)
        regret[lane] = paid * (means[1] - means[0])


@njit(parallel=True, fastmath=True)
def counter_weights(
    num, means, segment, horizon, rate, switch_rate, stddev, weights, gaps, regret
):  # pragma: no cover  compiled
    """Plays fixed share on the differences of noisy totals; the noise is a weighted sum of leaky sums."""
    rate, stays, comes = np.float32(rate), np.float32(1 - switch_rate), np.float32(switch_rate / (num - 1))
    stddev, buffers = np.float32(stddev), len(gaps)
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        losses, limits = np.zeros(num, np.float32), np.zeros(num, np.uint64)
        shares = np.full(num, np.float32(1 / num))
        sums, draws = np.zeros((buffers, num), np.float32), np.zeros(num, np.float32)
        totals, before = np.zeros(num, np.float32), np.zeros(num, np.float32)
        noisy = np.zeros(num, np.float32)
        good, paid = -1, 0
        for t in range(horizon):
            if t % segment == 0:
                first, second, good = shifted(first, second, good, means, limits)
            first, second, word = following(first, second)
            paid += drawn(uniform(word), shares) != good
            first, second = draw_losses(first, second, limits, losses)
            for i in range(num):
                first, second, word = following(first, second)
                first, second, value = normal(first, second, word)
                draws[i] = stddev * value
                totals[i] += losses[i]
                noisy[i] = totals[i]
            for j in range(buffers):
                for i in range(num):
                    sums[j, i] += draws[i] - gaps[j] * sums[j, i]
                    noisy[i] += weights[j] * sums[j, i]
            smallest = noisy[0] - before[0]
            for i in range(num):
                losses[i] = noisy[i] - before[i]
                before[i] = noisy[i]
                smallest = min(smallest, losses[i])
            mass = ZERO
            for i in range(num):
                shares[i] *= math.exp(-rate * (losses[i] - smallest))
                mass += shares[i]
            scale = ONE / mass
            for i in range(num):
                kept = shares[i] * scale
                shares[i] = stays * kept + comes * (ONE - kept)
        regret[lane] = paid * (means[1] - means[0])


@njit(fastmath=True, inline="always")
def selected(first, second, totals, scale):  # pragma: no cover  compiled
    """Returns the expert of the smallest total, less one-sided exponential noise."""
    best, index = np.float32(np.inf), 0
    for i in range(len(totals)):
        first, second, word = following(first, second)
        score = totals[i] + scale * math.log(ONE - uniform(word))
        if score < best:
            best, index = score, i
    return first, second, index


@njit(parallel=True, fastmath=True)
def limited_updates(num, means, segment, horizon, epsilon, regret):  # pragma: no cover  compiled
    """Plays the best expert, after noise, of a block of rounds in the next one, which is twice as long."""
    scale = np.float32(2 / epsilon)
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        losses, limits = np.zeros(num, np.float32), np.zeros(num, np.uint64)
        totals = np.zeros(num, np.float32)
        good, paid, expert, ends = -1, 0, 0, 1
        for t in range(horizon):
            if t % segment == 0:
                first, second, good = shifted(first, second, good, means, limits)
            paid += expert != good
            first, second = draw_losses(first, second, limits, losses)
            for i in range(num):
                totals[i] += losses[i]
            if t + 1 == ends:
                first, second, expert = selected(first, second, totals, scale)
                totals[:] = ZERO
                ends += t + 2
        regret[lane] = paid * (means[1] - means[0])


@njit(parallel=True, fastmath=True)
def svt_restarts(
    num, means, segment, horizon, epsilon, every, slack, before, window, margin, levels, regret, restarts
):  # pragma: no cover  compiled
    """Plays limited updates with restarts; of dyadic windows the last odd multiple of each length is kept."""
    scale, budget = np.float32(4 / epsilon), np.float32(epsilon / 2)
    window = np.float32(window * math.sqrt(every))
    roots = np.sqrt(np.arange(horizon // every + 2)).astype(np.float32)
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        losses, limits = np.zeros(num, np.float32), np.zeros(num, np.uint64)
        totals, regrets, beyond = np.zeros(num, np.float32), np.zeros(num, np.float32), np.zeros(num, np.float32)
        memory, times = np.zeros((levels, num), np.float32), np.zeros(levels, np.int64)
        good, paid, expert, begun, local, block, threshold = -1, 0, 0, 0, 0, 0, ZERO
        again = 0
        for t in range(horizon):
            if t % segment == 0:
                first, second, good = shifted(first, second, good, means, limits)
            if local == 0:
                first, second, word = following(first, second)
                half = uniform(word) - np.float32(0.5)
                noise = math.log(ONE - np.float32(2) * abs(half) + TINY)
                threshold = np.float32(4) / budget * (noise if half < 0 else -noise)
                regrets[:] = ZERO
                totals[:] = ZERO
                beyond[:] = ZERO
                begun, block = t // every, 0
            paid += expert != good
            first, second = draw_losses(first, second, limits, losses)
            if t % every == 0 and t > 0:
                now = t // every
                k = 0
                while now >> k & 1 == 0:  # an odd multiple of 2^k
                    k += 1
                times[k] = now
                for i in range(num):
                    memory[k, i] = beyond[i]
            own = losses[expert]
            local += 1
            if local == 2 << block:
                block += 1
            chance = before[block] + slack[block] * np.float32(local - (1 << block) + 1)
            for i in range(num):
                totals[i] += losses[i]
                regrets[i] += own - losses[i]
                beyond[i] = regrets[i] - chance
            old = expert
            if (local + 1) & local == 0:
                first, second, expert = selected(first, second, totals, scale)
                totals[:] = ZERO
            if (t + 1) % every == 0:
                now = (t + 1) // every
                best = beyond[0]
                for i in range(1, num):
                    best = max(best, beyond[i])
                best -= window * roots[now - begun]
                for k in range(levels):
                    if times[k] > begun:
                        most = beyond[0] - memory[k, 0]
                        for i in range(1, num):
                            most = max(most, beyond[i] - memory[k, i])
                        best = max(best, most - window * roots[now - times[k]])
                first, second, word = following(first, second)
                half = uniform(word) - np.float32(0.5)
                noise = math.log(ONE - np.float32(2) * abs(half) + TINY)
                if best - margin + np.float32(8) / budget * (noise if half < 0 else -noise) >= threshold:
                    local, expert = 0, old
                    again += 1
        regret[lane] = paid * (means[1] - means[0])
        restarts[lane] = again

"""Peers of lazy weights over sequences of few switches, as a good engineer writes them: one scalar loop per lane.

Arguments and random words are as in `numba_experts`; there are two forms of the weights' arithmetic.
"""

import math

import numpy as np
from numba import njit, prange

from benchmarks.peers.numba_experts import ONE, ZERO, draw_losses, drawn, shifted
from benchmarks.peers.numba_words import following, seeded, uniform


@njit(fastmath=True, inline="always")
def two_to(power):  # pragma: no cover  compiled
    """Returns 2^power for a power <= 0, or 0."""
    return np.int32((max(power, np.int32(-127)) + np.int32(127)) << np.int32(23)).view(np.float32)


@njit(parallel=True, fastmath=True)
def lazy_switching(
    num, means, segment, horizon, rate, fake, batch, budget, odds, futures, regret
):  # pragma: no cover  compiled
    """Plays lazy weights over sequences of few switches: a power of two for every entry, in float32.

    odds [steps, rows] of a switch, futures [steps, rows] of the rows in the distribution of states: tables for all
    lanes.
    """
    rate, fake = np.float32(rate), np.float32(fake)
    rows = odds.shape[1]
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        losses, limits = np.zeros(num, np.float32), np.zeros(num, np.uint64)
        batched, change = np.zeros(num, np.float32), np.zeros(num, np.float32)
        mantissa, power = np.ones((rows, num), np.float32), np.full((rows, num), np.int32(-(2**30)))
        came, came_power = np.zeros(num, np.float32), np.zeros(num, np.int32)
        distribution, columns, kept_row = (
            np.zeros((rows, num), np.float32),
            np.zeros(num, np.float32),
            np.zeros(rows, np.float32),
        )
        power[0] = 0
        good, paid, row, resamples, step = -1, 0, 0, 0, 0
        first, second, word = following(first, second)
        expert = int(uniform(word) * np.float32(num))
        for t in range(horizon):
            if t % segment == 0:
                first, second, good = shifted(first, second, good, means, limits)
            paid += expert != good
            first, second = draw_losses(first, second, limits, losses)
            for i in range(num):
                batched[i] += losses[i]
            if (t + 1) % batch != 0 or t + 1 == horizon:
                continue
            own = rate * batched[expert]
            for i in range(num):
                change[i] = math.exp(-rate * batched[i])
                batched[i] = ZERO
            # The step of all rows, the last one first, as each adds to the next one.
            largest = power[0, 0]
            for i in range(1, num):
                largest = max(largest, power[0, i])
            for c in range(rows - 1, -1, -1):
                for i in range(num):
                    mantissa[c, i] *= change[i]
                if c > 0:
                    top = power[c - 1, 0]
                    for i in range(1, num):
                        top = max(top, power[c - 1, i])
                    # What comes: the others of the row before, at their own largest power.
                    alone, tops, under = -1, 0, np.int32(-(2**30))
                    total = ZERO
                    for i in range(num):
                        value = mantissa[c - 1, i] * change[i] * two_to(power[c - 1, i] - top)
                        came[i] = value
                        total += value
                        if power[c - 1, i] == top:
                            tops += 1
                            alone = i
                        else:
                            under = max(under, power[c - 1, i])
                    for i in range(num):
                        came[i] = total - came[i]
                        came_power[i] = top
                    if tops == 1:
                        rest = ZERO
                        for i in range(num):
                            if i != alone:
                                rest += mantissa[c - 1, i] * change[i] * two_to(power[c - 1, i] - under)
                        came[alone] = rest
                        came_power[alone] = under
                    for i in range(num):
                        higher = max(power[c, i], came_power[i])
                        value = mantissa[c, i] * two_to(power[c, i] - higher) + came[i] * two_to(came_power[i] - higher)
                        word32 = np.float32(value).view(np.int32)
                        power[c, i] = max(
                            higher + ((word32 >> np.int32(23)) - np.int32(127)) - largest, np.int32(-(2**30))
                        )
                        mantissa[c, i] = np.int32((word32 & np.int32(0x7FFFFF)) | np.int32(0x3F800000)).view(np.float32)
                else:
                    for i in range(num):
                        word32 = np.float32(mantissa[c, i]).view(np.int32)
                        power[c, i] = power[c, i] + ((word32 >> np.int32(23)) - np.int32(127)) - largest
                        mantissa[c, i] = np.int32((word32 & np.int32(0x7FFFFF)) | np.int32(0x3F800000)).view(np.float32)
            first, second, word = following(first, second)
            step += 1
            if resamples < budget and uniform(word) >= (ONE - fake) * math.exp(-own):
                resamples += 1
                top = power[0, 0]
                for c in range(rows):
                    for i in range(num):
                        top = max(top, power[c, i])
                for i in range(num):
                    columns[i] = ZERO
                mass = ZERO
                for c in range(rows):
                    for i in range(num):
                        distribution[c, i] = mantissa[c, i] * two_to(power[c, i] - top) * futures[step, c]
                        columns[i] += distribution[c, i]
                        mass += distribution[c, i]
                first, second, word = following(first, second)
                expert = drawn(uniform(word) * mass, columns)
                for c in range(rows):
                    kept_row[c] = distribution[c, expert]
                first, second, word = following(first, second)
                row = drawn(uniform(word) * columns[expert], kept_row)
            else:
                first, second, word = following(first, second)
                if uniform(word) < odds[step - 1, row]:
                    first, second, word = following(first, second)
                    other = int(uniform(word) * np.float32(num - 1))
                    expert = other + (other >= expert)
                    row += 1
        regret[lane] = paid * (means[1] - means[0])


@njit(parallel=True, fastmath=True)
def lazy_doubles(
    num, means, segment, horizon, rate, fake, batch, budget, odds, futures, regret
):  # pragma: no cover  compiled
    """Plays `lazy_switching` with plain float64 sums: an expert that falls 700 nats behind is lost for good."""
    rate, fake = np.float32(rate), np.float32(fake)
    rows = odds.shape[1]
    for lane in prange(regret.shape[0]):
        first, second = seeded(lane)
        losses, limits = np.zeros(num, np.float32), np.zeros(num, np.uint64)
        batched, change = np.zeros(num, np.float32), np.zeros(num, np.float32)
        sums, columns, kept_row = np.zeros((rows, num)), np.zeros(num), np.zeros(rows)
        sums[0] = 1
        good, paid, row, resamples, step = -1, 0, 0, 0, 0
        first, second, word = following(first, second)
        expert = int(uniform(word) * np.float32(num))
        for t in range(horizon):
            if t % segment == 0:
                first, second, good = shifted(first, second, good, means, limits)
            paid += expert != good
            first, second = draw_losses(first, second, limits, losses)
            for i in range(num):
                batched[i] += losses[i]
            if (t + 1) % batch != 0 or t + 1 == horizon:
                continue
            own = rate * batched[expert]
            for i in range(num):
                change[i] = math.exp(-rate * batched[i])
                batched[i] = ZERO
            total = 0.0
            for c in range(rows - 1, -1, -1):
                for i in range(num):
                    sums[c, i] *= change[i]
                if c > 0:
                    total = 0.0
                    for i in range(num):
                        total += sums[c - 1, i] * change[i]
                    for i in range(num):
                        sums[c, i] += total - sums[c - 1, i] * change[i]
            if total < 1e-30:
                for c in range(rows):
                    for i in range(num):
                        sums[c, i] *= 1e30
            first, second, word = following(first, second)
            step += 1
            if resamples < budget and uniform(word) >= (ONE - fake) * math.exp(-own):
                resamples += 1
                for i in range(num):
                    columns[i] = 0
                mass = 0.0
                for c in range(rows):
                    for i in range(num):
                        columns[i] += sums[c, i] * futures[step, c]
                for i in range(num):
                    mass += columns[i]
                first, second, word = following(first, second)
                expert = drawn(uniform(word) * mass, columns)
                for c in range(rows):
                    kept_row[c] = sums[c, expert] * futures[step, c]
                first, second, word = following(first, second)
                row = drawn(uniform(word) * columns[expert], kept_row)
            else:
                first, second, word = following(first, second)
                if uniform(word) < odds[step - 1, row]:
                    first, second, word = following(first, second)
                    other = int(uniform(word) * np.float32(num - 1))
                    expert = other + (other >= expert)
                    row += 1
        regret[lane] = paid * (means[1] - means[0])

"""Elimination by effective Borda scores as a good engineer writes it: one scalar fastmath float32 loop per lane."""

import math

import numpy as np
from numba import njit, prange


@njit(fastmath=True)
def _laplace(scale):  # pragma: no cover  compiled
    uniform = np.float32(np.random.random()) - np.float32(0.5)  # noqa: NPY002
    size = -scale * math.log(np.float32(1) - np.float32(2) * abs(uniform))
    return size if uniform > 0 else -size


@njit(fastmath=True)
def _line(arm, digits, intercepts, slopes, arity, lines):  # pragma: no cover  compiled
    lowest = np.float32(np.inf)
    for r in range(len(intercepts)):
        intercept = intercepts[r]
        for h in range(1, len(digits)):
            intercept += digits[h, arm] * slopes[h, r]
        height = intercept + np.float32(arity // 2) * slopes[0, r]
        if height < lowest:
            lowest = height
            lines[0, arm], lines[1, arm] = intercept, slopes[0, r]


@njit(fastmath=True)
def _feed(  # pragma: no cover  compiled
    arm, value, scale, variances, intercepts, slopes, arity, digits, sums, estimates, upper, lines
):
    """Feeds one entry; a node that ends is combined with those inside it, and so is the next larger one that ends."""
    total, estimate = value, np.float32(value) + _laplace(scale)
    level = 0
    while digits[level, arm] == arity - 1:
        total += sums[level, arm]
        children = estimates[level, arm] + estimate
        digits[level, arm], sums[level, arm], estimates[level, arm] = 0, 0, np.float32(0)
        level += 1
        estimate = np.float32(total) + _laplace(scale)
        estimate += (np.float32(1) - variances[level]) * (children - estimate)
    digits[level, arm] += 1
    sums[level, arm] += total
    estimates[level, arm] += estimate
    if level > 0:
        above = np.float32(0)
        for h in range(1, len(variances)):
            above += estimates[h, arm]
        upper[arm] = above
        _line(arm, digits, intercepts, slopes, arity, lines)


@njit(parallel=True, fastmath=True)
def ebs_elimination(  # pragma: no cover  compiled
    preferences, regrets, scale, squared_radius, intercepts, slopes, variances, arity, horizon, regret
):
    """Fills regret [lanes] with the pseudo-regret. An arm's interval is computed again when it changes."""
    num, levels = preferences.shape[0], len(variances)
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        digits, sums = np.zeros((levels, num), np.int32), np.zeros((levels, num), np.int32)
        estimates, upper = np.zeros((levels, num), np.float32), np.zeros(num, np.float32)
        lines = np.zeros((2, num), np.float32)
        wins, plays = np.zeros((num, num), np.int32), np.zeros((num, num), np.int32)
        low, high = np.full(num, -np.inf, np.float32), np.full(num, np.inf, np.float32)
        played, active, size = np.zeros(num, np.int32), np.arange(num), num
        total = 0.0
        for arm in range(num):
            _line(arm, digits, intercepts, slopes, arity, lines)
        for t in range(horizon):
            left = active[0]  # turns by number: a random order, as jaxdp's, takes no longer
            for place in range(1, size):
                if played[active[place]] < played[left]:
                    left = active[place]
            right = active[int(np.random.random() * size)]  # noqa: NPY002
            won = 1 if np.float32(np.random.random()) < preferences[left, right] else 0  # noqa: NPY002
            total += regrets[left, right]
            plays[left, right] += 1
            wins[left, right] += won
            played[left] += 1
            _feed(left, won, scale, variances, intercepts, slopes, arity, digits, sums, estimates, upper, lines)
            n = np.float32(played[left])
            radius = math.sqrt(squared_radius[size] * n) + lines[0, left] + lines[1, left] * digits[0, left]
            share = upper[left] + estimates[0, left]
            low[left], high[left] = (share - radius) / n, (share + radius) / n
            best = low[active[0]]
            for place in range(1, size):
                best = max(best, low[active[place]])
            kept = 0
            for place in range(size):
                kept += high[active[place]] >= best
            if kept < size:
                place, gone = 0, np.zeros(num, np.bool_)
                for old in range(size):
                    arm = active[old]
                    if high[arm] >= best:
                        active[place] = arm
                        place += 1
                    else:
                        gone[arm] = True
                size = place
                if size == 1:
                    total += (horizon - 1 - t) * regrets[active[0], active[0]]
                    break
                for place in range(size):
                    arm, lost = active[place], 0
                    for other in range(num):
                        if gone[other]:
                            played[arm] -= plays[arm, other]
                            lost += wins[arm, other]
                    _feed(
                        *(arm, -lost, scale, variances, intercepts, slopes, arity),
                        *(digits, sums, estimates, upper, lines),
                    )
                    n = np.float32(max(played[arm], 1))
                    radius = math.sqrt(squared_radius[size] * n) + lines[0, arm] + lines[1, arm] * digits[0, arm]
                    share = upper[arm] + estimates[0, arm]
                    low[arm] = (share - radius) / n if played[arm] > 0 else -np.inf
                    high[arm] = (share + radius) / n if played[arm] > 0 else np.inf
        regret[lane] = total

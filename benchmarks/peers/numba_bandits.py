"""Peers of bandits, as a good engineer writes them: one scalar fastmath float32 loop per lane, in parallel.

Each fills regret [lanes] with the pseudo-regret on a Bernoulli bandit. Reports are randomized responses; `keep` is
their probability of being true.
"""

import math

import numpy as np
from numba import njit, prange

from benchmarks.peers.numba_duels import beta

ONE, HALF = np.float32(1), np.float32(0.5)


@njit(fastmath=True, inline="always")
def reported(mean, keep):  # pragma: no cover  compiled
    """Returns 1 if the arm is reported to have paid, else 0."""
    paid = np.float32(np.random.random()) < mean  # noqa: NPY002
    return paid if np.float32(np.random.random()) < keep else not paid  # noqa: NPY002


@njit(parallel=True, fastmath=True)
def tsallis_inf(means, keep, is_importance, is_warm, horizon, regret):  # pragma: no cover  compiled
    """Plays Tsallis-INF.

    Newton's steps start from the last round's root, or from y = 1, where the sum of weights is >= 1.
    """
    num = means.shape[0]
    factor = np.float32(2 if is_importance else 4)
    best = means.max()
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        losses = np.zeros(num, np.float32)
        weights = np.full(num, np.float32(1 / num))
        y = np.float32(math.sqrt(num))
        total = 0.0
        for t in range(1, horizon + 1):
            threshold = np.float32(np.random.random())  # noqa: NPY002
            arm, cumulative = 0, weights[0]
            while cumulative <= threshold and arm < num - 1:
                arm += 1
                cumulative += weights[arm]
            loss = np.float32(0 if reported(means[arm], keep) else 1)
            rate = factor / np.float32(math.sqrt(np.float32(t)))
            half_rate = HALF * factor / np.float32(math.sqrt(np.float32(t + 1)))
            if is_importance:
                losses[arm] += loss / weights[arm]
            else:
                threshold = rate * rate
                base = HALF if weights[arm] >= threshold else np.float32(0)
                estimate = (loss - base) / weights[arm]
                for i in range(num):
                    losses[i] += HALF if weights[i] >= threshold else np.float32(0)
                losses[arm] += estimate
            smallest = losses[0]
            for i in range(1, num):
                smallest = min(smallest, losses[i])
            mass = np.float32(0)
            if not is_warm:
                y = ONE
            for _ in range(30):
                mass, slope = np.float32(0), np.float32(0)
                for i in range(num):
                    inverse = ONE / (half_rate * (losses[i] - smallest) + y)
                    square = inverse * inverse
                    weights[i] = square
                    mass += square
                    slope += square * inverse
                if abs(mass - ONE) < np.float32(1e-5):
                    break
                y = max(y + HALF * (mass - ONE) / slope, ONE)
            scale = ONE / mass
            for i in range(num):
                weights[i] *= scale
            total += best - means[arm]
        regret[lane] = total


@njit(parallel=True, fastmath=True)
def ucb(means, keep, exploration_rate, horizon, regret):  # pragma: no cover  compiled
    """Plays UCB1 on bits: an arm's bound on the scale of bits, which orders arms as debiased bounds do."""
    num = means.shape[0]
    factor = HALF * np.float32(exploration_rate)
    best = means.max()
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        ones = np.zeros(num, np.float32)
        shares = np.zeros(num, np.float32)
        inverses = np.zeros(num, np.float32)
        plays = np.zeros(num, np.float32)
        total = 0.0
        for t in range(horizon):
            arm = t
            if t >= num:
                spread = factor * np.float32(math.log(np.float32(t)))
                arm, largest = 0, np.float32(-1)
                for i in range(num):
                    bound = shares[i] + np.float32(math.sqrt(spread * inverses[i]))
                    if bound > largest:
                        largest, arm = bound, i
            if reported(means[arm], keep):
                ones[arm] += ONE
            plays[arm] += ONE
            inverses[arm] = ONE / plays[arm]
            shares[arm] = ones[arm] * inverses[arm]
            total += best - means[arm]
        regret[lane] = total


@njit(fastmath=True)
def largest_bound(shares, inverses, plays, factor, used):  # pragma: no cover  compiled
    """Returns the first arm without plays, otherwise the arm with the largest bound after `used` reports."""
    spread = factor * np.float32(math.log(np.float32(max(used, 1))))
    arm, largest = 0, np.float32(-1)
    for i in range(shares.shape[0]):
        if plays[i] == 0:
            return i
        bound = shares[i] + np.float32(math.sqrt(spread * inverses[i]))
        if bound > largest:
            largest, arm = bound, i
    return arm


@njit(parallel=True, fastmath=True)
def late_ucb(means, keep, exploration_rate, delay, horizon, regret):  # pragma: no cover  compiled
    """Plays `ucb` with reports that arrive `delay` rounds later, from one ring buffer for each arm."""
    num, size = means.shape[0], delay + 1
    factor = HALF * np.float32(exploration_rate)
    best = means.max()
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        bits, due = np.zeros((num, size), np.bool_), np.zeros((num, size), np.int32)
        sent, heard = np.zeros(num, np.int32), np.zeros(num, np.int32)
        ones, shares = np.zeros(num, np.float32), np.zeros(num, np.float32)
        inverses, plays = np.zeros(num, np.float32), np.zeros(num, np.float32)
        total, used, arm, waits = 0.0, 0, 0, False
        for t in range(horizon):
            if not waits:
                arm = largest_bound(shares, inverses, plays, factor, used)
            bits[arm, sent[arm] % size] = reported(means[arm], keep)
            due[arm, sent[arm] % size] = t + delay
            sent[arm] += 1
            total += best - means[arm]
            waits = True
            while waits and heard[arm] < sent[arm] and due[arm, heard[arm] % size] <= t:
                if bits[arm, heard[arm] % size]:
                    ones[arm] += ONE
                heard[arm] += 1
                used += 1
                plays[arm] += ONE
                inverses[arm] = ONE / plays[arm]
                shares[arm] = ones[arm] * inverses[arm]
                waits = used < t + 1 - delay
                if waits:
                    arm = largest_bound(shares, inverses, plays, factor, used)
        regret[lane] = total


@njit(parallel=True, fastmath=True)
def thompson(means, keep, horizon, regret):  # pragma: no cover  compiled
    """Plays by Beta posteriors of the bits."""
    num = means.shape[0]
    best = means.max()
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        ones = np.ones(num, np.float32)
        zeros = np.ones(num, np.float32)
        total = 0.0
        for _ in range(horizon):
            arm, largest = 0, np.float32(-1)
            for i in range(num):
                drawn = beta(ones[i], zeros[i])
                if drawn > largest:
                    largest, arm = drawn, i
            if reported(means[arm], keep):
                ones[arm] += ONE
            else:
                zeros[arm] += ONE
            total += best - means[arm]
        regret[lane] = total


@njit(fastmath=True, inline="always")
def direction(vector):  # pragma: no cover  compiled
    """Draws a random unit vector."""
    square = np.float32(0)
    for i in range(vector.shape[0]):
        vector[i] = np.float32(np.random.standard_normal())  # noqa: NPY002
        square += vector[i] * vector[i]
    scale = ONE / np.float32(math.sqrt(square))
    for i in range(vector.shape[0]):
        vector[i] *= scale


@njit(parallel=True, fastmath=True)
def fkm(dim, slope, exploration, step, size, horizon, regret):  # pragma: no cover  compiled
    """Plays FKM on the linear loss slope <e, x> of the unit ball.

    Reports are `size` or its negative, of the loss's mean.
    """
    entry = np.float32(slope / math.sqrt(dim))
    share, far = np.float32(1 / size), np.float32(1 - exploration)
    apart, rate = np.float32(exploration), np.float32(step * size)
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        x = np.zeros(dim, np.float32)
        u = np.zeros(dim, np.float32)
        total = 0.0
        for _ in range(horizon):
            direction(u)
            loss = np.float32(0)
            for i in range(dim):
                loss += entry * (x[i] + apart * u[i])
            total += loss + slope
            bias = HALF * min(max(loss, -ONE), ONE) * share
            move = -rate if np.float32(np.random.random()) < HALF + bias else rate  # noqa: NPY002
            square = np.float32(0)
            for i in range(dim):
                x[i] += move * u[i]
                square += x[i] * x[i]
            if square > far * far:
                shrink = far / np.float32(math.sqrt(square))
                for i in range(dim):
                    x[i] *= shrink
        regret[lane] = total


@njit(parallel=True, fastmath=True)
def two_point(dim, slope, exploration, step, size, horizon, regret):  # pragma: no cover  compiled
    """Plays the same, from the slope between two points."""
    entry = np.float32(slope / math.sqrt(dim))
    share, far, rate = np.float32(1 / size), np.float32(1 - exploration), np.float32(step * size)
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        x = np.zeros(dim, np.float32)
        u = np.zeros(dim, np.float32)
        total = 0.0
        for _ in range(horizon):
            direction(u)
            loss, rise = np.float32(0), np.float32(0)
            for i in range(dim):
                loss += entry * x[i]
                rise += entry * u[i]
            total += loss + slope
            bias = HALF * min(max(rise, -ONE), ONE) * share
            move = -rate if np.float32(np.random.random()) < HALF + bias else rate  # noqa: NPY002
            square = np.float32(0)
            for i in range(dim):
                x[i] += move * u[i]
                square += x[i] * x[i]
            if square > far * far:
                shrink = far / np.float32(math.sqrt(square))
                for i in range(dim):
                    x[i] *= shrink
        regret[lane] = total

"""Peers of duels, as a good engineer writes them: one scalar fastmath float32 loop per lane, in parallel.

Each fills regret [lanes] with the strong regret of a preference matrix with arm 0 as Condorcet winner. Reports are
randomized responses; `keep` is their probability of being true, and `bias` is 2 keep - 1.
"""

import math

import numpy as np
from numba import njit, prange

ONE, HALF = np.float32(1), np.float32(0.5)


@njit(fastmath=True, inline="always")
def reported(matrix, left, right, keep):  # pragma: no cover  compiled
    """Returns 1 if the left arm is reported to have won, else 0."""
    won = np.float32(np.random.random()) < matrix[left, right]  # noqa: NPY002
    return won if np.float32(np.random.random()) < keep else not won  # noqa: NPY002


@njit(parallel=True, fastmath=True)
def rucb(matrix, keep, exploration_rate, horizon, regret):  # pragma: no cover  compiled
    """Plays by relative upper confidence bounds. The bounds less 1/2 are divided by the common factor of privacy."""
    num = matrix.shape[0]
    rate, far = np.float32(exploration_rate), np.float32(1.5) * (np.float32(2) * np.float32(keep) - ONE)
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        wins = np.zeros((num, num), np.float32)
        leads = np.zeros((num, num), np.float32)
        total, hypothesis = 0.0, -1
        for t in range(1, horizon + 1):
            spread = rate * np.float32(math.log(np.float32(t)))
            champions, last, kept = 0, -1, False
            for i in range(num):  # pairs once: both of their bounds share the root
                for j in range(i + 1, num):
                    duels = wins[i, j] + wins[j, i]
                    if duels > 0:
                        inverse = ONE / duels
                        middle = HALF * (wins[i, j] - wins[j, i]) * inverse
                        radius = np.float32(math.sqrt(spread * inverse))
                        leads[i, j], leads[j, i] = radius + middle, radius - middle
                    else:
                        leads[i, j], leads[j, i] = far, far
            mask = 0
            for i in range(num):
                smallest = leads[i, 0]
                for j in range(1, num):
                    smallest = min(smallest, leads[i, j])
                if smallest >= 0:
                    champions += 1
                    last = i
                    mask |= 1 << i
                    kept = kept or i == hypothesis
            if champions == 1:
                hypothesis = last
            elif not kept:
                hypothesis = -1
            if champions == 1:
                left = last
            elif champions == 0:
                left = int(np.random.random() * num)  # noqa: NPY002
            elif hypothesis >= 0 and np.random.random() < 0.5:  # noqa: NPY002
                left = hypothesis
            else:
                if hypothesis >= 0:
                    mask &= ~(1 << hypothesis)
                    champions -= 1
                skip = int(np.random.random() * champions)  # noqa: NPY002
                left = 0
                while True:
                    if mask >> left & 1:
                        if skip == 0:
                            break
                        skip -= 1
                    left += 1
            largest = leads[0, left]
            for j in range(1, num):
                largest = max(largest, leads[j, left])
            ties, right = 0, left
            for j in range(num):
                if j != left and leads[j, left] == largest:
                    ties += 1
                    if ties == 1 or np.random.random() * ties < 1:  # noqa: NPY002
                        right = j
            if reported(matrix, left, right, keep):
                wins[left, right] += ONE
            else:
                wins[right, left] += ONE
            total += matrix[0, left] + matrix[0, right] - ONE
        regret[lane] = total


@njit(fastmath=True, inline="always")
def beta(first, second):  # pragma: no cover  compiled
    """Draws a Beta variate from two Gamma variates, each by Marsaglia and Tsang's (2000) rejection; parameters >= 1."""
    gammas = (np.float32(0), np.float32(0))
    for which in range(2):
        shape = first if which == 0 else second
        d = shape - np.float32(1 / 3)
        c = ONE / np.float32(math.sqrt(np.float32(9) * d))
        while True:
            x = np.float32(np.random.standard_normal())  # noqa: NPY002
            v = ONE + c * x
            if v <= 0:
                continue
            v = v * v * v
            u = np.float32(np.random.random())  # noqa: NPY002
            square = x * x
            if u < ONE - np.float32(0.0331) * square * square:
                break
            if math.log(u) < HALF * square + d * (ONE - v + math.log(v)):
                break
        gammas = (d * v, gammas[1]) if which == 0 else (gammas[0], d * v)
    return gammas[0] / (gammas[0] + gammas[1])


@njit(parallel=True, fastmath=True)
def double_thompson(matrix, keep, exploration_rate, horizon, regret):  # pragma: no cover  compiled
    """Double Thompson sampling with shrunk posteriors. Draws that decide nothing are left out."""
    num = matrix.shape[0]
    rate, bias = np.float32(exploration_rate), np.float32(2) * np.float32(keep) - ONE
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        wins = np.zeros((num, num), np.float32)
        first = np.ones((num, num), np.float32)  # the Beta distributions' first parameters
        middle = np.zeros((num, num), np.float32)
        beats = np.zeros(num, np.int32)
        may_beat = np.zeros(num, np.int32)
        total = 0.0
        for t in range(1, horizon + 1):
            spread = rate * np.float32(math.log(np.float32(t)))
            may_beat[:] = 0
            for i in range(num):
                for j in range(i + 1, num):
                    duels = wins[i, j] + wins[j, i]
                    radius = np.float32(math.sqrt(spread / duels)) if duels > 0 else np.float32(1.5)
                    may_beat[i] += middle[i, j] + radius > 0
                    may_beat[j] += radius - middle[i, j] > 0
            most = may_beat.max()
            beats[:] = 0
            for i in range(num):
                for j in range(i + 1, num):
                    if may_beat[i] == most or may_beat[j] == most:  # the others' draws decide nothing
                        if beta(first[i, j], first[j, i]) > HALF:
                            beats[i] += 1
                        else:
                            beats[j] += 1
            left, ties, highest = 0, 0, -1
            for i in range(num):
                if may_beat[i] == most:
                    if beats[i] > highest:
                        left, ties, highest = i, 1, beats[i]
                    elif beats[i] == highest:
                        ties += 1
                        if np.random.random() * ties < 1:  # noqa: NPY002
                            left = i
            right, largest = left, HALF
            for j in range(num):
                if j != left:
                    duels = wins[j, left] + wins[left, j]
                    radius = np.float32(math.sqrt(spread / duels)) if duels > 0 else np.float32(1.5)
                    if middle[j, left] - radius <= 0:
                        rival = beta(first[j, left], first[left, j])
                        if rival > largest:
                            right, largest = j, rival
            if reported(matrix, left, right, keep):
                wins[left, right] += ONE
            else:
                wins[right, left] += ONE
            if left == right:
                wins[left, right] = 0
            else:
                duels = wins[left, right] + wins[right, left]
                middle[left, right] = HALF * (wins[left, right] - wins[right, left]) / duels
                middle[right, left] = -middle[left, right]
                share = min(max(HALF + middle[left, right] / bias, np.float32(0)), ONE)
                first[left, right] = ONE + bias * bias * duels * share
                first[right, left] = ONE + bias * bias * duels * (ONE - share)
            total += matrix[0, left] + matrix[0, right] - ONE
        regret[lane] = total


@njit(parallel=True, fastmath=True)
def versatile_sparring(matrix, keep, is_importance, horizon, regret):  # pragma: no cover  compiled
    """Plays two Tsallis-INF players; Newton's steps start from the last round's root."""
    num = matrix.shape[0]
    factor = np.float32(2 if is_importance else 4)
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        losses = np.zeros((2, num), np.float32)
        weights = np.full((2, num), np.float32(1 / num))
        roots = np.full(2, np.float32(math.sqrt(num)))
        pair = np.zeros(2, np.int64)
        total = 0.0
        for t in range(1, horizon + 1):
            for player in range(2):
                threshold = np.float32(np.random.random())  # noqa: NPY002
                arm, cumulative = 0, weights[player, 0]
                while cumulative <= threshold and arm < num - 1:
                    arm += 1
                    cumulative += weights[player, arm]
                pair[player] = arm
            said = np.float32(1 if reported(matrix, pair[0], pair[1], keep) else 0)
            rate = factor / np.float32(math.sqrt(np.float32(t)))
            following = factor / np.float32(math.sqrt(np.float32(t + 1)))
            for player in range(2):
                arm = pair[player]
                loss = ONE - said if player == 0 else said
                if is_importance:
                    losses[player, arm] += loss / weights[player, arm]
                else:
                    threshold = rate * rate
                    base = HALF if weights[player, arm] >= threshold else np.float32(0)
                    estimate = (loss - base) / weights[player, arm]
                    for i in range(num):
                        losses[player, i] += HALF if weights[player, i] >= threshold else np.float32(0)
                    losses[player, arm] += estimate
                smallest = losses[player, 0]
                for i in range(1, num):
                    smallest = min(smallest, losses[player, i])
                half_rate = HALF * following
                y = roots[player]
                mass = np.float32(0)
                for _ in range(30):
                    mass, slope = np.float32(0), np.float32(0)
                    for i in range(num):
                        inverse = ONE / (half_rate * (losses[player, i] - smallest) + y)
                        square = inverse * inverse
                        weights[player, i] = square
                        mass += square
                        slope += square * inverse
                    if abs(mass - ONE) < np.float32(1e-5):
                        break
                    y = max(y + HALF * (mass - ONE) / slope, ONE)
                roots[player] = y
                scale = ONE / mass
                for i in range(num):
                    weights[player, i] *= scale
            total += matrix[0, pair[0]] + matrix[0, pair[1]] - ONE
        regret[lane] = total

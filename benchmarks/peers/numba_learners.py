"""Peers of online learners, as a good engineer writes them: one scalar fastmath float32 loop per lane, in parallel."""

import math

import numpy as np
from numba import njit, prange


@njit(parallel=True, fastmath=True)
def exponential_weights(means, epsilon, learning_rate, horizon, regret):  # pragma: no cover  compiled
    """Plays noisy exponential weights on Bernoulli losses; fills regret [lanes] with the pseudo-regret."""
    num_experts = means.shape[0]
    scale = np.float32(num_experts / epsilon)
    rate = np.float32(learning_rate)
    half = np.float32(0.5)
    best = means.min()
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        totals = np.zeros(num_experts, np.float32)
        weights = np.zeros(num_experts, np.float32)
        total_regret = 0.0
        for _ in range(horizon):
            smallest = totals[0]
            for i in range(1, num_experts):
                smallest = min(smallest, totals[i])
            mass = np.float32(0)
            for i in range(num_experts):
                weights[i] = math.exp(-rate * (totals[i] - smallest))
                mass += weights[i]
            threshold = np.float32(np.random.random()) * mass  # noqa: NPY002
            action = 0
            cumulative = weights[0]
            while cumulative <= threshold and action < num_experts - 1:
                action += 1
                cumulative += weights[action]
            total_regret += means[action] - best
            for i in range(num_experts):
                loss = np.float32(1) if np.float32(np.random.random()) < means[i] else np.float32(0)  # noqa: NPY002
                uniform = np.float32(np.random.random()) - half  # noqa: NPY002
                noise = scale * math.log(np.float32(1) - np.float32(2) * abs(uniform))
                totals[i] += loss + (noise if uniform < 0 else -noise)
        regret[lane] = total_regret


@njit(parallel=True, fastmath=True)
def explore_then_commit(means, epsilon, explore_rounds, horizon, regret):  # pragma: no cover  compiled
    """Plays private explore-then-commit on a Bernoulli bandit; fills regret [lanes] with the pseudo-regret."""
    num_arms = means.shape[0]
    scale = np.float32(1.0 / epsilon)
    half = np.float32(0.5)
    best = means.max()
    for lane in prange(regret.shape[0]):
        np.random.seed(lane)  # noqa: NPY002
        wins = np.zeros(num_arms, np.int64)
        committed = -1
        total_regret = 0.0
        for t in range(horizon):
            arm = committed if committed >= 0 else t % num_arms
            reward = np.float32(np.random.random()) < means[arm]  # noqa: NPY002
            total_regret += best - means[arm]
            if t < explore_rounds:
                wins[arm] += reward
                if t == explore_rounds - 1:
                    largest = np.float32(-np.inf)
                    for i in range(num_arms):
                        uniform = np.float32(np.random.random()) - half  # noqa: NPY002
                        noise = scale * math.log(np.float32(1) - np.float32(2) * abs(uniform))
                        score = wins[i] + (noise if uniform < 0 else -noise)
                        if score > largest:
                            largest, committed = score, i
        regret[lane] = total_regret

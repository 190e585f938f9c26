"""Independent NumPy versions of the learners that find the best arm.

Written from the algorithms' definitions, in float64, on unbiased reports whose variance proxy is that of the channel:
many lanes side by side, with NumPy's random numbers. A world is a list of means; with a `spread` rewards are normal,
else 0 or 1.
"""

import math

import numpy as np


def factor(epsilon):
    return 1.0 if math.isinf(epsilon) else (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)


def reports(generator, arms, means, *, epsilon, spread=None, low=0.0, high=1.0, stddev=None):
    """What the users of these arms tell, [lanes]; stddev is of Gaussian reports."""
    mean = np.asarray(means)[arms]
    if spread is None:
        rewards = (generator.random(len(arms)) < mean).astype(float)
    else:
        rewards = np.clip(mean + spread * generator.standard_normal(len(arms)), low, high)
    if stddev is not None:
        return rewards + stddev * generator.standard_normal(len(arms))
    middle, half = (low + high) / 2, (high - low) / 2
    c = factor(epsilon)
    return middle + half * c * np.where(generator.random(len(arms)) < 0.5 + (rewards - middle) / (2 * half * c), 1, -1)


def proxy(*, epsilon, low=0.0, high=1.0, stddev=None):
    half = (high - low) / 2
    return (half * factor(epsilon)) ** 2 if stddev is None else half**2 + stddev**2


def outputs(rounds, answer, plays):
    return {"rounds": rounds, "correct": (answer == 0).astype(float), "best_arm_plays": plays[:, 0]}


def largest(generator, scores):
    """Returns the index of each row's largest score; of equal ones any, each as likely."""
    tied = scores == scores.max(axis=1, keepdims=True)
    return np.argmax(np.where(tied, generator.random(scores.shape), -1), axis=1)


def lil_ucb(generator, lanes, *, means, failure_prob, constants, spread=None, **channel):
    arms, every = len(means), np.arange(lanes)
    variance = proxy(**channel)
    if constants == "theory":
        e, b = 0.01, 1.0
        c = (2 + e) / e * (1 / math.log(1 + e)) ** (1 + e)
        d = (math.sqrt(1 + failure_prob) - 1) ** 2 / (4 * c)
        wait = 9 * (1 + math.log(2 * math.log(9 / d)) / math.log(1 / d))
    else:
        e, b, d, wait = 0.0, 0.5, failure_prob / 5, 1 + 10 / arms
    plays, sums = np.zeros((lanes, arms)), np.zeros((lanes, arms))
    rounds, runs = np.zeros(lanes), np.ones(lanes, bool)
    for t in range(10**6):
        if t < arms:
            arm = np.full(lanes, t)
        else:
            inner = np.log((1 + e) * plays) if constants == "theory" else np.log(plays + 2)
            width = (1 + b) * (1 + math.sqrt(e)) * np.sqrt(2 * variance * (1 + e) * np.log(inner / d) / plays)
            arm = largest(generator, sums / plays + width)
        told = reports(generator, arm, means, spread=spread, **channel)
        sums[every[runs], arm[runs]] += told[runs]
        plays[every[runs], arm[runs]] += 1
        rounds[runs] += 1
        if t + 1 >= arms:
            runs &= ~np.any(plays >= 1 + wait * (plays.sum(axis=1, keepdims=True) - plays), axis=1)
        if not runs.any():
            return outputs(rounds, largest(generator, plays), plays)
    raise AssertionError


def successive_elimination(generator, lanes, *, means, failure_prob, multiplier=1.0, spread=None, **channel):
    arms, every = len(means), np.arange(lanes)
    variance = proxy(**channel)
    active, sums = np.ones((lanes, arms), bool), np.zeros((lanes, arms))
    rounds, plays = np.zeros(lanes), np.zeros((lanes, arms))
    for r in range(1, 10**6):
        runs = active.sum(axis=1) > 1
        if not runs.any():
            return outputs(rounds, np.argmax(active, axis=1), plays)
        for arm in range(arms):
            told = reports(generator, np.full(lanes, arm), means, spread=spread, **channel)
            here = runs & active[:, arm]
            sums[every[here], arm] += told[here]
            plays[here, arm] += 1
            rounds[here] += 1
        radius = multiplier * math.sqrt(2 * variance * math.log(math.pi**2 * arms * r**2 / (3 * failure_prob)) / r)
        mean = np.where(active, sums / r, -np.inf)
        drop = mean.max(axis=1, keepdims=True) - mean > 2 * radius
        active &= ~(drop & runs[:, None])
    raise AssertionError

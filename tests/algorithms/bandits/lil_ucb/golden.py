"""An independent version of `lil_ucb`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.golden_best_arm import outputs, proxy, reports


def largest(generator, scores):
    """Returns the index of each row's largest score; of equal ones any, each as likely."""
    tied = scores == scores.max(axis=1, keepdims=True)
    return np.argmax(np.where(tied, generator.random(scores.shape), -1), axis=1)


def lil_ucb(generator, lanes, *, means, failure_prob, constants, spread=None, **randomizer):
    arms, every = len(means), np.arange(lanes)
    variance = proxy(**randomizer)
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
        told = reports(generator, arm, means, spread=spread, **randomizer)
        sums[every[runs], arm[runs]] += told[runs]
        plays[every[runs], arm[runs]] += 1
        rounds[runs] += 1
        if t + 1 >= arms:
            runs &= ~np.any(plays >= 1 + wait * (plays.sum(axis=1, keepdims=True) - plays), axis=1)
        if not runs.any():
            return outputs(rounds, largest(generator, plays), plays)
    raise AssertionError

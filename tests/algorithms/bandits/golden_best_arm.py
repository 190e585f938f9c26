"""Independent NumPy versions of the learners that find the best arm.

They are written from the algorithms' definitions, in float64, on unbiased reports with the randomizer's variance proxy,
for many lanes side by side, with NumPy's random numbers. A world is a list of means; with a `spread` rewards are
normal, otherwise 0 or 1.
"""

import math

import numpy as np


def factor(epsilon):
    return 1.0 if math.isinf(epsilon) else (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)


def reports(generator, arms, means, *, epsilon, spread=None, low=0.0, high=1.0, stddev=None):
    """Draws the reports of users of these arms, [lanes]; stddev is for Gaussian reports."""
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

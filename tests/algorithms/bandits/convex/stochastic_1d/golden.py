"""An independent version of `stochastic_1d`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.convex.golden_convex import (
    best_loss,
    mean_loss,
    reported,
    size,
)


def stochastic_1d(generator, lanes, world, *, horizon, epsilon, bound, report="rr", stddev=0.0, noise=0.0):
    radius = world["radius"]
    variance = (bound * size(epsilon)) ** 2 if report == "rr" else bound**2 + stddev**2
    low, high = np.full(lanes, -radius), np.full(lanes, radius)
    level, plays, sums = np.ones(lanes), np.zeros((lanes, 3)), np.zeros((lanes, 3))
    regret, half, every = np.zeros(lanes), None, np.arange(lanes)
    for t in range(1, horizon + 1):
        which = np.argmin(plays, axis=1)
        x = low + (high - low) * (which + 1) / 4
        regret += mean_loss(world, x[:, None]) - best_loss(world)
        losses = mean_loss(world, x[:, None]) + noise * generator.standard_normal(lanes)
        sums[every, which] += reported(generator, losses, bound, report, epsilon, stddev)
        plays[every, which] += 1
        gamma = bound * 2.0**-level
        is_over = plays.min(axis=1) >= np.ceil(2 * variance * math.log(horizon) / gamma**2)
        means = (sums / np.maximum(plays, 1)).T
        lower, upper = means - gamma, means + gamma
        ends = np.maximum(lower[0], lower[2])
        cut = (ends >= np.minimum(upper[0], upper[2]) + gamma) | (ends >= upper[1] + gamma)
        left_is_cut = lower[0] >= lower[2]
        quarter = (high - low) / 4
        low = np.where(is_over & cut & left_is_cut, low + quarter, low)
        high = np.where(is_over & cut & ~left_is_cut, high - quarter, high)
        level = np.where(is_over, np.where(cut, 1, level + 1), level)
        plays[is_over & cut] = sums[is_over & cut] = 0
        half = regret.copy() if t == horizon // 2 else half
    return {"half": half, "regret": regret, "low": low, "high": high}

"""An independent version of `two_point`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.convex.golden_convex import (
    best_loss,
    into,
    mean_loss,
    reach,
    reported,
    second_moment,
    towards,
    unit,
)


def two_point(
    generator, lanes, world, *, horizon, epsilon, lipschitz, report="rr", stddev=0.0, strong=None, constants="tuned"
):
    """Takes descent steps by slopes between x + rho u and x - rho u; stddev is for the noise of a slope."""
    dim, radius = world["dim"], world["radius"]
    moment = second_moment(lipschitz, report, epsilon, stddev)
    apart = radius / horizon if constants == "tuned" else min(radius, math.log(horizon) / horizon)
    x, regret, half = np.zeros((lanes, dim)), np.zeros(lanes), None
    for t in range(1, horizon + 1):
        directions = unit(generator, lanes, dim)
        ends = [mean_loss(world, x + apart * directions), mean_loss(world, x - apart * directions)]
        regret += (ends[0] + ends[1]) / 2 - best_loss(world)
        told = reported(generator, (ends[0] - ends[1]) / (2 * apart), lipschitz, report, epsilon, stddev)
        if strong is not None:
            rate = 1 / (strong * t)
        elif constants == "tuned":
            rate = reach(world) / (dim * math.sqrt(moment * horizon))
        else:
            rate = 1 / math.sqrt(horizon)
        x = into(world, x - rate * dim * told[:, None] * directions, radius - apart)
        half = regret.copy() if t == horizon // 2 else half
    return {"half": half, "regret": regret, "along": x @ towards(world)}

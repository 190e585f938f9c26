"""An independent version of `one_point`, in NumPy."""

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


def price(world):
    """Returns the cost of exploring, in units of its distance, the Lipschitz constant and the rounds."""
    return 3 + reach(world) / world["radius"]


def one_point(
    generator, lanes, world, *, horizon, epsilon, bound, lipschitz, report="rr", stddev=0.0, noise=0.0, strong=None
):
    """Plays FKM; with `strong`, the constant of strong convexity, its variant with steps 1 / (strong t)."""
    dim, radius = world["dim"], world["radius"]
    moment = second_moment(bound, report, epsilon, stddev)
    if strong is None:
        explored = math.sqrt(reach(world) * dim * math.sqrt(moment) / (price(world) * lipschitz)) * horizon**-0.25
    else:
        cost = dim**2 * moment * (1 + math.log(horizon)) / strong
        explored = (cost / (price(world) * lipschitz * horizon)) ** (1 / 3)
    explored = min(radius, explored)
    x, regret, half = np.zeros((lanes, dim)), np.zeros(lanes), None
    for t in range(1, horizon + 1):
        directions = unit(generator, lanes, dim)
        played = x + explored * directions
        losses = mean_loss(world, played) + noise * generator.standard_normal(lanes)
        regret += mean_loss(world, played) - best_loss(world)
        told = reported(generator, losses, bound, report, epsilon, stddev)
        rate = reach(world) * explored / (dim * math.sqrt(moment * horizon)) if strong is None else 1 / (strong * t)
        x = into(world, x - rate * dim / explored * told[:, None] * directions, radius - explored)
        half = regret.copy() if t == horizon // 2 else half
    return {"half": half, "regret": regret, "along": x @ towards(world)}

"""Independent NumPy versions of the convex bandits, on a linear and a quadratic loss of the ball.

Written from the algorithms' definitions, in float64: many lanes side by side, with NumPy's random numbers. A world is
{"dim", "radius", "slope"} for the mean loss slope <e, x>, or {"dim", "radius", "curvature", "target"} for curvature
|x - target e|^2 / 2 less its value at 0, where e = (1, ..., 1) / sqrt(dim).
"""

import math

import numpy as np


def towards(world):
    return np.ones(world["dim"]) / math.sqrt(world["dim"])


def mean_loss(world, x):
    """[lanes, dim] -> [lanes]."""
    if "slope" in world:
        return world["slope"] * x @ towards(world)
    middle = world["target"] * towards(world)
    away = x - middle
    return world["curvature"] / 2 * (np.sum(away * away, axis=-1) - middle @ middle)


def best_loss(world):
    distance = -world["radius"] if "slope" in world else min(world["target"], world["radius"])
    return mean_loss(world, distance * towards(world))


def unit(generator, lanes, dim):
    normals = generator.standard_normal((lanes, dim))
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def onto_ball(x, radius):
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    return np.where(norm > radius, x * radius / np.where(norm > 0, norm, 1), x)


def size(epsilon):
    """Of a randomized response: bound times this."""
    return 1.0 if math.isinf(epsilon) else (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)


def second_moment(bound, report, epsilon, stddev):
    return (bound * size(epsilon)) ** 2 if report == "rr" else bound**2 + stddev**2


def reported(generator, values, bound, report, epsilon, stddev):
    """Numbers of [-bound, bound], else clipped, as users tell them; stddev is of Gaussian reports."""
    values = np.clip(values, -bound, bound)
    if report == "gaussian":
        return values + stddev * generator.standard_normal(values.shape)
    if math.isinf(epsilon):
        return values
    share = 0.5 + values / (2 * bound) * (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    return bound * size(epsilon) * np.where(generator.random(values.shape) < share, 1, -1)


def one_point(
    generator, lanes, world, *, horizon, epsilon, bound, lipschitz, report="rr", stddev=0.0, noise=0.0, strong=None
):
    """FKM, or for `strong`, the constant of strong convexity, its variant with steps 1 / (strong t)."""
    dim, radius = world["dim"], world["radius"]
    moment = second_moment(bound, report, epsilon, stddev)
    if strong is None:
        explored = math.sqrt(radius * dim * math.sqrt(moment) / (4 * lipschitz)) * horizon**-0.25
    else:
        explored = (dim**2 * moment * (1 + math.log(horizon)) / (4 * strong * lipschitz * horizon)) ** (1 / 3)
    explored = min(radius, explored)
    x, regret, half = np.zeros((lanes, dim)), np.zeros(lanes), None
    for t in range(1, horizon + 1):
        directions = unit(generator, lanes, dim)
        played = x + explored * directions
        losses = mean_loss(world, played) + noise * generator.standard_normal(lanes)
        regret += mean_loss(world, played) - best_loss(world)
        told = reported(generator, losses, bound, report, epsilon, stddev)
        rate = radius * explored / (dim * math.sqrt(moment * horizon)) if strong is None else 1 / (strong * t)
        x = onto_ball(x - rate * dim / explored * told[:, None] * directions, radius - explored)
        half = regret.copy() if t == horizon // 2 else half
    return {"half": half, "regret": regret, "along": x @ towards(world)}


def two_point(
    generator, lanes, world, *, horizon, epsilon, lipschitz, report="rr", stddev=0.0, strong=None, constants="tuned"
):
    """Descent by slopes between x + rho u and x - rho u; stddev is that of a slope's noise."""
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
            rate = radius / (dim * math.sqrt(moment * horizon))
        else:
            rate = 1 / math.sqrt(horizon)
        x = onto_ball(x - rate * dim * told[:, None] * directions, radius - apart)
        half = regret.copy() if t == horizon // 2 else half
    return {"half": half, "regret": regret, "along": x @ towards(world)}

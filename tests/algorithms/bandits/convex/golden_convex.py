"""Independent NumPy versions of the convex bandits, on a linear and a quadratic loss of a ball or a box.

They are written from the algorithms' definitions, in float64, for many lanes side by side, with NumPy's random numbers.
A world is {"dim", "radius", "slope"} for the mean loss slope <e, x>, or {"dim", "radius", "curvature", "target"} for
curvature |x - target e|^2 / 2 less its value at 0, where e = (1, ..., 1) / sqrt(dim). With "domain": "box" it is a box,
and "radius" is half the length of its sides.
"""

import math

import numpy as np


def towards(world):
    return np.ones(world["dim"]) / math.sqrt(world["dim"])


def mean_loss(world, x):
    """Returns the mean loss, [lanes], at points [lanes, dim]."""
    if "slope" in world:
        return world["slope"] * x @ towards(world)
    middle = world["target"] * towards(world)
    away = x - middle
    return world["curvature"] / 2 * (np.sum(away * away, axis=-1) - middle @ middle)


def reach(world):
    """Returns the largest distance of a point from the centre; for the box, half a diagonal."""
    return math.hypot(*[world["radius"]] * (world["dim"] if world.get("domain") == "box" else 1))


def best_loss(world):
    distance = -reach(world) if "slope" in world else min(world["target"], reach(world))
    return mean_loss(world, distance * towards(world))


def unit(generator, lanes, dim):
    normals = generator.standard_normal((lanes, dim))
    return normals / np.linalg.norm(normals, axis=1, keepdims=True)


def onto_ball(x, radius):
    norm = np.linalg.norm(x, axis=1, keepdims=True)
    return np.where(norm > radius, x * radius / np.where(norm > 0, norm, 1), x)


def into(world, x, radius):
    """Returns the nearest point of the domain of this radius."""
    return np.minimum(np.maximum(x, -radius), radius) if world.get("domain") == "box" else onto_ball(x, radius)


def size(epsilon):
    """Returns the size of a randomized response, as a multiple of bound."""
    return 1.0 if math.isinf(epsilon) else (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)


def second_moment(bound, report, epsilon, stddev):
    return (bound * size(epsilon)) ** 2 if report == "rr" else bound**2 + stddev**2


def reported(generator, values, bound, report, epsilon, stddev):
    """Draws the users' reports of numbers in [-bound, bound], after clipping; stddev is for Gaussian reports."""
    values = np.clip(values, -bound, bound)
    if report == "gaussian":
        return values + stddev * generator.standard_normal(values.shape)
    if math.isinf(epsilon):
        return values
    share = 0.5 + values / (2 * bound) * (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    return bound * size(epsilon) * np.where(generator.random(values.shape) < share, 1, -1)

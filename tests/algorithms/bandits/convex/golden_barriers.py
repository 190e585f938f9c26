"""Independent NumPy versions of the convex bandits with barriers, and of the one on an interval.

They are written from the algorithms' definitions, in float64. Hessians are matrices; their powers are computed from
eigenvectors, and minima by bisection. Worlds are as for `numpy_convex`.
"""

import math

import numpy as np

from tests.algorithms.bandits.convex.golden_convex import (
    best_loss,
    mean_loss,
    reported,
    second_moment,
    size,
    towards,
    unit,
)


def range_bound(bound, report, epsilon, stddev, horizon, failure_prob=0.05):
    if report == "rr":
        return bound * size(epsilon)
    return bound + stddev * math.sqrt(2 * math.log(2 * horizon / failure_prob))


def hessian(x, radius, is_box=False):
    """Returns the barrier's Hessian: [lanes, dim, dim].

    The barrier is -ln(1 - |x|^2 / R^2), or the sum of -ln(1 - x_i / R) - ln(1 + x_i / R).
    """
    if is_box:
        return (1 / (radius - x) ** 2 + 1 / (radius + x) ** 2)[:, :, None] * np.eye(x.shape[1])
    rest = radius**2 - np.sum(x * x, axis=1)[:, None, None]
    return 2 / rest * np.eye(x.shape[1]) + 4 * x[:, :, None] * x[:, None, :] / rest**2


def power(matrices, exponent):
    values, vectors = np.linalg.eigh(matrices)
    return np.einsum("lij,lj,lkj->lik", vectors, values**exponent, vectors)


def leader(slope, curvature, rate, radius, is_box=False):
    """Minimises <slope, x> + curvature |x|^2 / 2 + barrier / rate over the domain; a box is a product of intervals."""
    if is_box:
        return np.concatenate([leader(each, curvature, rate, radius) for each in np.split(slope, slope.shape[1], 1)], 1)
    norm = np.linalg.norm(slope, axis=1)
    low, high = np.zeros(len(norm)), np.full(len(norm), radius)
    for _ in range(100):
        middle = (low + high) / 2
        is_below = curvature * middle + 2 * middle / (rate * (radius**2 - middle**2)) < norm
        low, high = np.where(is_below, middle, low), np.where(is_below, high, middle)
    return -slope * (low / np.where(norm > 0, norm, 1))[:, None]


def barrier(
    generator, lanes, world, *, horizon, epsilon, bound, smooth, strong=None, report="rr", stddev=0.0, noise=0.0
):
    """Plays Saha & Tewari's algorithm; with `strong`, the constant of strong convexity, Hazan & Levy's."""
    dim, radius, is_box = world["dim"], world["radius"], world.get("domain") == "box"
    parameter = dim if is_box else 1
    largest = range_bound(bound, report, epsilon, stddev, horizon)
    logarithm = parameter * math.log(horizon)
    if strong is None:
        size_ = math.sqrt(second_moment(bound, report, epsilon, stddev))
        explored = min(
            1.0, (2 * math.sqrt(2) * dim * size_ * math.sqrt(logarithm / horizon) / (smooth * radius**2)) ** (1 / 3)
        )
        rate = min(explored * math.sqrt(logarithm / (2 * horizon)) / (dim * size_), explored / (2 * dim * largest))
    else:
        explored = 1.0
        rate = math.sqrt((parameter + 2 * smooth / strong) * math.log(horizon) / (2 * dim**2 * largest**2 * horizon))
        rate = min(rate, 1 / (2 * dim * largest))
    curved = strong or 0.0
    x, slope, regret, half = np.zeros((lanes, dim)), np.zeros((lanes, dim)), np.zeros(lanes), None
    for t in range(1, horizon + 1):
        precision = hessian(x, radius, is_box) + rate * curved * t * np.eye(dim)
        directions = unit(generator, lanes, dim)
        played = x + explored * np.einsum("lij,lj->li", power(precision, -0.5), directions)
        regret += mean_loss(world, played) - best_loss(world)
        losses = mean_loss(world, played) + noise * generator.standard_normal(lanes)
        told = reported(generator, losses, bound, report, epsilon, stddev)
        gradient = dim / explored * told[:, None] * np.einsum("lij,lj->li", power(precision, 0.5), directions)
        slope += gradient - curved * x
        x = leader(slope, curved * t, rate, radius, is_box)
        half = regret.copy() if t == horizon // 2 else half
    return {"half": half, "regret": regret, "along": rate * radius * slope @ towards(world)}

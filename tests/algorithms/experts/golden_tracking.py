"""Independent NumPy versions of the learners that select from exact losses: exact distributions and simulations.

They are written from the algorithms' definitions, in float64. `*_distribution` enumerates every transcript of a tiny
instance, and integrates over the noise of thresholds; the others simulate many lanes with NumPy's random numbers.
"""

import itertools
import math

import numpy as np
import scipy.stats

QUADRATURE = np.polynomial.legendre.leggauss(8)


def permute_and_flip(totals, epsilon):
    """Returns P(expert): in random order, the first with heads of probability exp(-epsilon (total - least) / 2)."""
    heads = np.exp(-epsilon / 2 * (np.asarray(totals) - min(totals)))
    distribution, orders = np.zeros(len(heads)), list(itertools.permutations(range(len(heads))))
    for order in orders:
        tails = 1.0
        for expert in order:
            distribution[expert] += tails * heads[expert] / len(orders)
            tails *= 1 - heads[expert]
    return distribution


def exponential_mechanism(totals, rate):
    weights = np.exp(-rate * (np.asarray(totals) - min(totals)))
    return weights / weights.sum()


def is_power_of_two(number):
    return number & (number - 1) == 0


def laplace_grid(scale, reach=45.0, panels=300):
    """Returns nodes and weights that integrate functions of Laplace noise."""
    edges = np.linspace(-reach * scale, reach * scale, panels + 1)
    nodes, weights = QUADRATURE
    places = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    return places, (np.diff(edges)[:, None] * weights / 2).ravel() * scipy.stats.laplace.pdf(places, scale=scale)


def select(generator, totals, epsilon):
    """Selects a small total, by permute-and-flip for all lanes at once: argmax of -total + exponential noise."""
    if math.isinf(epsilon):
        tied = totals == totals.min(axis=1, keepdims=True)
        return np.where(tied, generator.random(totals.shape), -1).argmax(1)  # of equal totals any
    return (generator.exponential(2 / epsilon, totals.shape) - totals).argmax(1)


def draw(generator, lanes, means):
    return (generator.random((lanes, len(means))) < means).astype(float)

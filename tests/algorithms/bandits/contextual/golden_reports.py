"""NumPy versions of contextual learners, written from the papers and their corrections, many lanes at once.

They share no code with the library, and draw by NumPy's generators.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr


def analytic_gaussian(epsilon, delta, sensitivity):
    """Returns the least standard deviation by Balle & Wang (2018)."""

    def excess(log_stddev):
        ratio = sensitivity / math.exp(log_stddev)
        first, second = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
        return math.exp(log_ndtr(first)) - math.exp(epsilon + log_ndtr(second)) - delta

    return math.exp(float(brentq(excess, -10, 10)))  # pyright: ignore[reportArgumentType]


def unit_vectors(generator, *shape):
    drawn = generator.normal(size=shape)
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def gaussian_reports(generator, x, y, stddev):
    """Draws x x^T and y x, |y| <= 1, with noise of one standard deviation in all orthonormal directions."""
    lanes, dim = x.shape
    raw = generator.normal(size=(lanes, dim, dim)) * stddev
    noise = (raw + np.swapaxes(raw, 1, 2)) / 2  # diagonal: stddev; others: stddev / sqrt(2)
    outer = x[:, :, None] * x[:, None, :] + noise
    return outer, y[:, None] * x + generator.normal(size=x.shape) * stddev


def ball_constants(dim, epsilon):
    """Returns D, the radius B and tau of the report from the ball of radius sqrt(2)."""
    entries = dim * (dim + 1) // 2 + dim
    share = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    ratio = math.exp(gammaln((entries + 1) / 2) - gammaln(entries / 2 + 1))
    radius = math.sqrt(2) * share * math.sqrt(math.pi) / 2 * entries * ratio
    return entries, radius, radius / math.sqrt(entries)


def ball_proxy(entries, epsilon):
    """Returns the variance proxy of a ball report, times D / B^2: the worst over directions, scales and lengths of v.

    A report is uniform on one of two half-spheres. Let h = |cos| be the height along their pole, g the height along an
    orthogonal direction, and w the mean of the half's sign. Then E exp(s z) = F + w O in the direction at an angle a to
    the pole; the exponent without the mean is concave in w.
    """
    bias = math.tanh(epsilon / 2)
    nodes, weights = np.polynomial.legendre.leggauss(300)
    tilt, turn = (nodes + 1) * math.pi / 4, (nodes + 1) * math.pi / 2
    of_tilt, of_turn = weights * np.sin(tilt) ** (entries - 2), weights * np.sin(turn) ** (entries - 3)
    of_tilt, of_turn = of_tilt / of_tilt.sum(), of_turn / of_turn.sum()
    height, mean, largest = np.cos(tilt), of_tilt @ np.cos(tilt), 1 / entries
    for angle in np.linspace(0, math.pi / 2, 13):
        across = math.sin(angle) * np.sin(tilt)[:, None] * np.cos(turn)
        for scale in np.geomspace(0.1, 4 * entries, 40):
            spread = np.exp(scale * across - scale) @ of_turn
            up, down = (of_tilt @ (spread * np.exp(sign * scale * math.cos(angle) * height)) for sign in (1, -1))
            for sign in (1, -1):
                slope, odd = sign * scale * mean * math.cos(angle), sign * (up - down) / 2
                share = np.clip(1 / slope - (up + down) / 2 / odd, 0, bias) if abs(odd) > 1e-14 * up else 0.0
                left = scale + math.log((up + down) / 2 + share * odd) - share * slope
                largest = max(largest, 2 * left / scale**2)
    return largest * entries


def ball_reports(generator, x, y, epsilon):
    lanes, dim = x.shape
    rows, columns = np.triu_indices(dim, 1)
    vector = np.concatenate([x**2, math.sqrt(2) * x[:, rows] * x[:, columns], y[:, None] * x], axis=1)
    entries, radius, _ = ball_constants(dim, epsilon)
    length = np.linalg.norm(vector, axis=1)
    pole = (
        np.where(generator.random(lanes) < 0.5 + length / math.sqrt(8), 1.0, -1.0)[:, None] * vector / length[:, None]
    )
    point = unit_vectors(generator, lanes, entries) * radius
    point *= np.where(np.sum(point * pole, axis=1) >= 0, 1.0, -1.0)[:, None]
    point *= np.where(generator.random(lanes) < 1 / (1 + math.exp(-epsilon)), 1.0, -1.0)[:, None]
    outer = np.zeros((lanes, dim, dim))
    outer[:, rows, columns] = point[:, dim:-dim] / math.sqrt(2)
    outer += np.swapaxes(outer, 1, 2)
    outer[:, np.arange(dim), np.arange(dim)] = point[:, :dim]
    return outer, point[:, -dim:]

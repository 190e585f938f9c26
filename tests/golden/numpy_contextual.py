"""NumPy versions of contextual learners, written from the papers and their corrections, many lanes at once.

They share no code with the library, and draw by NumPy's generators.
"""

import math

import numpy as np
from scipy.optimize import brentq
from scipy.special import gammaln, log_ndtr


def analytic_gaussian(epsilon, delta, sensitivity):
    """The least standard deviation of Balle & Wang (2018)."""

    def excess(log_stddev):
        ratio = sensitivity / math.exp(log_stddev)
        first, second = ratio / 2 - epsilon / ratio, -ratio / 2 - epsilon / ratio
        return math.exp(log_ndtr(first)) - math.exp(epsilon + log_ndtr(second)) - delta

    return math.exp(float(brentq(excess, -10, 10)))  # pyright: ignore[reportArgumentType]


def unit_vectors(generator, *shape):
    drawn = generator.normal(size=shape)
    return drawn / np.linalg.norm(drawn, axis=-1, keepdims=True)


def gaussian_reports(generator, x, y, stddev):
    """x x^T and y x, |y| <= 1, with noise of one standard deviation in all orthonormal directions."""
    lanes, dim = x.shape
    raw = generator.normal(size=(lanes, dim, dim)) * stddev
    noise = (raw + np.swapaxes(raw, 1, 2)) / 2  # diagonal: stddev; others: stddev / sqrt(2)
    outer = x[:, :, None] * x[:, None, :] + noise
    return outer, y[:, None] * x + generator.normal(size=x.shape) * stddev


def ball_constants(dim, epsilon):
    """D, the radius B and tau of the report from the ball of radius sqrt(2)."""
    entries = dim * (dim + 1) // 2 + dim
    share = (math.exp(epsilon) + 1) / (math.exp(epsilon) - 1)
    ratio = math.exp(gammaln((entries + 1) / 2) - gammaln(entries / 2 + 1))
    radius = math.sqrt(2) * share * math.sqrt(math.pi) / 2 * entries * ratio
    return entries, radius, radius / math.sqrt(entries)


def ball_proxy(entries, epsilon):
    """The variance proxy of a ball report, times D / B^2: the worst over directions, scales and lengths of v.

    A report is uniform on one of two half-spheres. With h = |cos| the height along their pole, g that of a direction
    across, and w the mean of the half's sign, E exp(s z) = F + w O in the direction at an angle a to the pole; the
    exponent that is left of the mean is concave in w.
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


def linear_ucb(generator, lanes, *, dim, num_arms, horizon, epsilon, delta, report, failure_prob=0.05):
    """Regret after the whole horizon, |theta~ - theta*|_V / beta then: contexts on the sphere, theta* = e_1 / 2.

    Rewards have uniform noise in [-1/2, 1/2], so that |y| <= 1; the model is computed anew in every round.
    """
    theta = np.zeros(dim)
    theta[0] = 0.5
    private, is_ball = math.isfinite(epsilon), report == "l2_ball"
    log_term = math.log(6 * horizon / failure_prob)
    outer, cross, regret = np.zeros((lanes, dim, dim)), np.zeros((lanes, dim)), np.zeros(lanes)
    stddev = analytic_gaussian(epsilon, delta, math.sqrt(4.5)) if private and not is_ball else 0.0
    entries, radius, tau = ball_constants(dim, epsilon) if private and is_ball else (2, 0.0, 0.0)
    proxy = ball_proxy(entries, epsilon) if private and is_ball else 0.0
    log_dim = math.log(6 * dim * horizon / failure_prob)
    centre = np.zeros((lanes, dim))
    inverse = width = np.nan
    for t in range(horizon + 1):
        if is_ball:
            bound = tau * math.sqrt(t * (dim + 1) * log_dim) + (2 / 3 * (radius + 1) * log_dim if private else 0.0)
            vector = tau * math.sqrt(proxy * t)
        else:
            bound = stddev * math.sqrt(t) * (math.sqrt(2 * dim) + math.sqrt(2 * log_term))
            vector = stddev * math.sqrt(t)
        bound = max(1.0, bound)
        shifted = outer + 2 * bound * np.eye(dim)
        inverse = np.linalg.inv(shifted)
        centre = np.einsum("lij,lj->li", inverse, cross)
        width = math.sqrt(3 * bound) + vector * (math.sqrt(dim) + math.sqrt(2 * log_term)) / math.sqrt(bound)
        width += math.sqrt(2 * log_term + dim * math.log(1 + t / (dim * bound)))
        if t == horizon:
            apart = centre - theta
            return regret, np.sqrt(np.einsum("li,lij,lj->l", apart, shifted, apart)) / width
        contexts = unit_vectors(generator, lanes, num_arms, dim)
        squares = np.einsum("lki,lij,lkj->lk", contexts, inverse, contexts)
        arms = np.argmax(np.einsum("lki,li->lk", contexts, centre) + width * np.sqrt(squares), axis=1)
        x = contexts[np.arange(lanes), arms]
        means = contexts @ theta
        regret += means.max(axis=1) - x @ theta
        y = np.clip(x @ theta + generator.uniform(-0.5, 0.5, lanes), -1, 1)
        if not private:
            reported = x[:, :, None] * x[:, None, :], y[:, None] * x
        elif is_ball:
            reported = ball_reports(generator, x, y, epsilon)
        else:
            reported = gaussian_reports(generator, x, y, stddev)
        outer += reported[0]
        cross += reported[1]
    raise AssertionError("the last round returns")

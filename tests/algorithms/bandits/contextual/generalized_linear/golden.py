"""A NumPy version of optimism in a generalized linear model on private reports, written from the paper as corrected.

It shares no code with the library, and draws by NumPy's generators; many lanes at once.
"""

import math

import numpy as np
from scipy.stats import norm

from tests.algorithms.bandits.contextual.golden_reports import (
    analytic_gaussian,
    ball_constants,
    ball_proxy,
    ball_reports,
    gaussian_reports,
    unit_vectors,
)

LINKS = {
    "logistic": (lambda z: 1 / (1 + np.exp(-z)), math.exp(-1) / (1 + math.exp(-1)) ** 2),
    "probit": (norm.cdf, norm.pdf(1.0)),
}


def generalized_linear(
    generator, lanes, *, dim, num_arms, horizon, epsilon, delta, report, link="logistic", failure_prob=0.05
):
    """Returns regret and |theta~ - theta*|_V / beta after the whole horizon; contexts are on the sphere, theta* = e_1.

    Rewards are 0 or 1; residuals may be 3 in absolute value, and noise is 1-sub-Gaussian. The model is computed again
    in every round.
    """
    mean, slope = LINKS[link]
    theta = np.eye(dim)[0]
    log_term = math.log(6 * horizon / failure_prob)
    private, most = math.isfinite(epsilon), 3.0
    stddev = vector = radius = 0.0
    if private and report == "gaussian":
        stddev = vector = analytic_gaussian(epsilon, delta, math.sqrt(4.5))
        linear, root, constant = (
            most**2 * (1 + dim * stddev**2),
            2 * (most * stddev) ** 2 * math.sqrt(2 * dim * log_term),
            2 * (most * stddev) ** 2 * log_term,
        )
    elif private:
        entries, radius, stddev = ball_constants(dim, epsilon)
        vector = stddev * math.sqrt(ball_proxy(entries, epsilon))
        mean_square = (most * stddev) ** 2 * dim
        linear, root = mean_square, math.sqrt(2 * log_term * mean_square) * most * radius
        constant = (most * radius) ** 2 * log_term / 3
    else:
        linear, root, constant = most**2, 0.0, 0.0

    def squares(t):
        return linear * t + root * math.sqrt(t) + constant

    rate = squares(horizon) ** -0.5
    reach = 2.0 if report == "l2_ball" else 2 + rate * most
    log_dim = log_term + math.log(dim)
    outer, cross, regret = np.zeros((lanes, dim, dim)), np.zeros((lanes, dim)), np.zeros(lanes)
    iterate, rows = np.zeros((lanes, dim)), np.arange(lanes)
    for t in range(horizon + 1):
        if report == "gaussian":
            bound = stddev * math.sqrt(t) * (math.sqrt(2 * dim) + math.sqrt(2 * log_term))
        else:
            bound = stddev * math.sqrt(t * (dim + 1) * log_dim) + (2 / 3 * (radius + 1) * log_dim if private else 0)
        bound = max(1.0, bound)
        shifted = outer + 2 * bound * np.eye(dim)
        inverse = np.linalg.inv(shifted)
        centre = np.einsum("lij,lj->li", inverse, cross)
        learned = 1 / (2 * rate) + rate / 2 * squares(t) + reach * most * vector * math.sqrt(2 * t * log_term)
        chance = 2 * log_term / slope
        width = (math.sqrt(chance) + math.sqrt(chance + 4 * learned)) / (2 * math.sqrt(slope))
        width += vector * math.sqrt(t / bound) * (math.sqrt(dim) + math.sqrt(2 * log_term)) + math.sqrt(3 * bound)
        if t == horizon:
            apart = centre - theta
            return regret, np.sqrt(np.einsum("li,lij,lj->l", apart, shifted, apart)) / width
        contexts = unit_vectors(generator, lanes, num_arms, dim)
        lengths = np.sqrt(np.einsum("lki,lij,lkj->lk", contexts, inverse, contexts))
        arms = np.argmax(np.einsum("lki,li->lk", contexts, centre) + width * lengths, axis=1)
        x, means = contexts[rows, arms], mean(contexts[:, :, 0])
        regret += means.max(axis=1) - means[rows, arms]
        reward = generator.random(lanes) < means[rows, arms]
        residual = mean(np.sum(x * iterate, axis=1)) - reward
        if not private:
            square, gradient = x[:, :, None] * x[:, None, :], residual[:, None] * x
        else:
            reports = (
                gaussian_reports(generator, x, residual / most, stddev)
                if report == "gaussian"
                else ball_reports(generator, x, residual / most, epsilon)
            )
            square, gradient = reports[0], most * reports[1]
        outer += square
        cross += np.einsum("lij,lj->li", square, iterate)
        iterate = iterate - rate * gradient
        iterate /= np.maximum(1, np.linalg.norm(iterate, axis=1, keepdims=True))
    raise AssertionError("the last round returns")

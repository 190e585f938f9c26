"""An independent version of `linear_ucb`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.contextual.golden_reports import (
    analytic_gaussian,
    ball_constants,
    ball_proxy,
    ball_reports,
    gaussian_reports,
    unit_vectors,
)


def linear_ucb(generator, lanes, *, dim, num_arms, horizon, epsilon, delta, report, failure_prob=0.05):
    """Returns regret and |theta~ - theta*|_V / beta after the whole horizon.

    Contexts are on the sphere, theta* = e_1 / 2. Rewards have uniform noise in [-1/2, 1/2], so that |y| <= 1; the model
    is computed again in every round.
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

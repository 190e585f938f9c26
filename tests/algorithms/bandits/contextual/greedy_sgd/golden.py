"""A NumPy version of greedy play on private gradients, written from the paper as corrected, many lanes at once.

It shares no code with the library, and draws by NumPy's generators.
"""

import math

import numpy as np

from tests.algorithms.bandits.contextual.golden_reports import unit_vectors


def gradient_reports(generator, gradients, epsilon, longest):
    """Reports each gradient as a point of a sphere, with the two coins of Duchi, Jordan & Wainwright (2018)."""
    lanes, dim = gradients.shape
    if math.isinf(epsilon):
        return gradients * np.minimum(1, longest / np.linalg.norm(gradients, axis=1, keepdims=True))
    length = np.linalg.norm(gradients, axis=1)
    is_ahead = generator.random(lanes) < 0.5 + np.minimum(length / longest, 1) / 2
    pole = np.where(is_ahead, 1.0, -1.0)[:, None] * gradients
    points = unit_vectors(generator, lanes, dim)
    points *= np.where(np.sum(points * pole, axis=1) >= 0, 1.0, -1.0)[:, None]
    points *= np.where(generator.random(lanes) < math.exp(epsilon) / (1 + math.exp(epsilon)), 1.0, -1.0)[:, None]
    return report_radius(dim, epsilon, longest) * points


def report_radius(dim, epsilon, longest):
    """Returns the length of reports, by the mean of |w_1| of a random unit vector w."""
    share = 1.0 if math.isinf(epsilon) else (math.exp(epsilon) - 1) / (math.exp(epsilon) + 1)
    return longest / share * math.sqrt(math.pi) * math.gamma((dim + 1) / 2) / math.gamma(dim / 2)


def greedy_sgd(generator, lanes, *, dim, num_arms, horizon, epsilon, reward_bound=1.0):
    """Returns regret and |theta - theta*| after the horizon; contexts are on the sphere, theta* = e_1 / 2."""
    theta, rows = np.eye(dim)[0] / 2, np.arange(lanes)
    longest = reward_bound / 2
    delay = (dim * report_radius(dim, epsilon, longest) / reward_bound) ** 2
    model, regret = np.zeros((lanes, dim)), np.zeros(lanes)
    for t in range(1, horizon + 1):
        contexts = unit_vectors(generator, lanes, num_arms, dim)
        scores = np.einsum("lki,li->lk", contexts, model)
        arms = np.argmax(scores, axis=1)
        x, means = contexts[rows, arms], contexts @ theta
        regret += means.max(axis=1) - means[rows, arms]
        rewards = np.clip(means[rows, arms] + generator.uniform(-0.5, 0.5, lanes), -reward_bound, reward_bound)
        gradients = (np.sum(x * model, axis=1) - rewards)[:, None] * x
        model = model - dim / (t + delay) * gradient_reports(generator, gradients, epsilon, longest)
        model /= np.maximum(1, np.linalg.norm(model, axis=1, keepdims=True) / reward_bound)
    return regret, np.linalg.norm(model - theta, axis=1)

"""Independent NumPy versions of the bandits on Bernoulli arms, in float64, all lanes side by side.

Written from the papers and the definitions. Each returns [lanes, num_arms], how often each arm was played.
"""

import math

import numpy as np

from tests.algorithms.dueling.golden_duels import gaussian_stddev


def factor(epsilon):
    """Returns c = (e^epsilon + 1) / (e^epsilon - 1)."""
    return 1 / math.tanh(epsilon / 2)


def rewards_of(generator, means, arm):
    return (generator.random(len(arm)) < means[arm]).astype(float)


def bits(generator, epsilon, paid):
    """Draws Warner's randomized response."""
    keeps = generator.random(len(paid)) < 1 / (1 + math.exp(-epsilon))
    return np.where(keeps, paid, 1 - paid)


def drawn(generator, weights):
    edges = np.cumsum(weights / weights.sum(1, keepdims=True), axis=1)
    return np.minimum((generator.random((len(weights), 1)) > edges).sum(1), weights.shape[1] - 1)


def losses_of(generator, epsilon, paid, report, horizon, delta, failure_prob):
    """Returns losses in [0, 1]."""
    if report == "rr":
        return 1 - bits(generator, epsilon, paid)
    if report == "laplace":
        shift = math.log(horizon / failure_prob) / epsilon
        noise = generator.laplace(0, 1 / epsilon, len(paid)) if epsilon < math.inf else 0
    else:
        stddev = gaussian_stddev(epsilon, delta)
        shift, noise = stddev * math.sqrt(2 * math.log(2 * horizon / failure_prob)), generator.normal(0, 1, len(paid))
        noise = stddev * noise
    return np.clip((1 - paid + noise + shift) / (1 + 2 * shift), 0, 1)


def largest(generator, scores):
    """Returns the index of each row's largest score; of equal ones any, each as likely."""
    tied = scores == scores.max(axis=1, keepdims=True)
    return np.argmax(np.where(tied, generator.random(scores.shape), -1), axis=1)

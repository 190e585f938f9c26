"""Independent versions of every registered estimator, in NumPy and SciPy with float64, written from the papers.

Each has two functions: `reports(generator, values, features, labels, count)` draws `count` reports as rows of an array,
and `fit(values, features, report)` makes theta of one report, as the library's `privatize` returns it.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import minimize, root, root_scalar
from scipy.special import expit, log_ndtr, logsumexp, ndtr, softmax

RATE = 0.3


class Golden(NamedTuple):
    """An estimator: how it reports, and how it fits."""

    reports: Callable[..., np.ndarray]
    fit: Callable[..., np.ndarray]


def minimum(value_and_gradient, dim, radius):
    """Finds the minimiser over the ball: a search, and then a solution of its stationarity conditions as equations."""
    ball = {"type": "ineq", "fun": lambda t: radius**2 - t @ t, "jac": lambda t: -2 * t}
    options = {"ftol": 1e-14, "maxiter": 1000}
    found = minimize(value_and_gradient, np.zeros(dim), jac=True, method="SLSQP", constraints=[ball], options=options).x

    def gradient(theta):
        return value_and_gradient(theta)[1]

    if np.linalg.norm(found) < radius * (1 - 1e-5):
        return root(gradient, found, tol=1e-13).x

    def conditions(point):
        theta, multiplier = point[:-1], point[-1]
        return np.append(gradient(theta) + multiplier * theta, theta @ theta - radius**2)

    multiplier = -(gradient(found) @ found) / radius**2
    return root(conditions, np.append(found, multiplier), tol=1e-13).x[:-1]


# Reports.


def clear(generator, values, features, labels, count):
    return np.broadcast_to(labels.ravel(), (count, labels.size))


def binary_response(generator, values, features, labels, count):
    truth = generator.random((count, labels.size)) < expit(values["epsilon"])
    return np.where(truth, labels, 1 - labels)


def k_ary_response(generator, values, features, labels, count):
    """Draws the label with probability e^eps / (e^eps + K - 1), any other one with 1 / (e^eps + K - 1)."""
    num_actions = features.shape[1]
    weights = np.where(np.arange(num_actions) == labels[:, None], math.exp(values["epsilon"]), 1.0)
    edges = np.cumsum(weights / weights.sum(1, keepdims=True), axis=1)
    return (generator.random((count, len(labels), 1)) > edges[None]).sum(-1)


def analytic_multiplier(epsilon, delta):
    """Returns the multiplier of Balle & Wang (2018), Theorem 8."""

    def excess(ratio):
        u, v = epsilon * ratio - 1 / (2 * ratio), epsilon * ratio + 1 / (2 * ratio)
        return ndtr(-u) - math.exp(epsilon) * ndtr(-v) - delta

    return root_scalar(excess, bracket=(1e-3, 1e4), xtol=1e-12, rtol=1e-12).root


def noisy_statistic(generator, values, features, labels, count):
    """sum y x + N(0, (multiplier max |x|)^2 I)."""
    sigma = analytic_multiplier(values["epsilon"], values["delta"]) * np.linalg.norm(features, axis=1).max()
    return labels @ features + sigma * generator.normal(size=(count, features.shape[1]))


def whitening(values, features):
    """Returns the root of the second moment, and the noise's standard deviation in whitened coordinates."""
    spectrum, vectors = np.linalg.eigh(features.T @ features / len(features))
    leverages = ((features @ vectors) ** 2 / spectrum).sum(1)
    sigma = analytic_multiplier(values["epsilon"], values["delta"]) * math.sqrt(leverages.max())
    return vectors @ np.diag(np.sqrt(spectrum)) @ vectors.T, sigma


def whitened_statistic(generator, values, features, labels, count):
    """sum y x + (second moment)^(1/2) N(0, (multiplier max |white x|)^2 I)."""
    root, sigma = whitening(values, features)
    return labels @ features + sigma * generator.normal(size=(count, features.shape[1])) @ root


def noisy_choice_statistic(generator, values, features, labels, count):
    """sum phi_y, less the mean over actions, which is public; noise for max |phi_j - phi_k|."""
    pairs = features[:, :, None] - features[:, None, :]
    sigma = analytic_multiplier(values["epsilon"], values["delta"]) * np.linalg.norm(pairs, axis=-1).max()
    statistic = (features[np.arange(len(labels)), labels] - features.mean(1)).sum(0)
    return statistic + sigma * generator.normal(size=(count, features.shape[2]))


def labels_and_noise(generator, values, features, labels, count):
    """Returns raw labels, and w of Theorem 5.2 with L half the longest differential feature."""
    epsilon, norm = values["epsilon"], np.linalg.norm(features, axis=1).max() / 2
    sigma = norm * math.sqrt(8 * math.log(2 / values["delta"]) + 4 * epsilon) / epsilon
    noise = sigma * generator.normal(size=(count, features.shape[1]))
    return np.hstack([np.broadcast_to(labels, (count, len(labels))), noise])


def clipped(values, features):
    norms = np.linalg.norm(features, axis=1, keepdims=True)
    return features * np.minimum(1, 2 * values["feature_norm"] / norms)


def private_minimisers(generator, values, features, labels, count):
    """Minimises as in Theorem E.1 without a ball, by Newton's method on all draws of w together.

    Then converged, which is 1.
    """
    epsilon, norm = values["epsilon"], values["feature_norm"]
    sigma = 4 * norm * math.sqrt(8 * math.log(4 / values["delta"]) + 2 * epsilon) / epsilon
    beta = 4 * norm**2 / epsilon
    x, dim = clipped(values, features), features.shape[1]
    w = sigma * generator.normal(size=(count, dim))
    theta = gradient = np.zeros((count, dim))
    for _ in range(200):
        p = expit(theta @ x.T)
        gradient = (p - labels) @ x + beta * theta + w
        hessian = np.einsum("cn,ni,nj->cij", p * (1 - p), x, x) + beta * np.eye(dim)
        step = np.linalg.solve(hessian, gradient[..., None])[..., 0]
        theta = theta - step / (1 + np.sqrt(np.sum(step * gradient, axis=1, keepdims=True)))  # damped, so it converges
        if np.abs(step).max() < 1e-9:
            break
    assert np.abs(gradient).max() < 1e-6
    return np.hstack([theta, np.ones((count, 1))])


# Fits from all samples.


def unbiased(values, report):
    truth = expit(values["epsilon"])
    return (report - (1 - truth)) / (2 * truth - 1)


def logistic_minimum(values, features, statistic):
    """Minimises (1/n) sum log(1 + e^{x.theta}) - S.theta / n + (beta / 2n) |theta|^2 over the ball."""
    n, beta = len(features), values.get("regularization", 0.0)

    def objective(theta):
        z = features @ theta
        value = np.logaddexp(0, z).sum() - statistic @ theta + beta / 2 * theta @ theta
        return value / n, (expit(z) @ features - statistic + beta * theta) / n

    return minimum(objective, features.shape[1], values["radius"])


def whitened_minimum(values, features, report):
    """Minimises with the ridge of least predicted margin error, among n trace(moment) 2^(-k/2)."""
    root, sigma = whitening(values, features)
    num, spectrum, curvature = len(features), np.linalg.eigvalsh(root) ** 2, 0.25 / math.sqrt(1 + math.pi / 8)
    best = (math.inf, 0.0)
    for k in range(121):
        beta = num * spectrum.sum() * 2 ** (-k / 2)
        error = 0.0
        for value in spectrum:
            variance = num * curvature * value + sigma**2 * value + beta**2 / spectrum.sum()
            error += value * variance / (num * curvature * value + beta) ** 2
        best = min(best, (error, beta))
    return logistic_minimum({**values, "regularization": best[1]}, features, report)


def randomized_likelihood(values, features, report):
    """Computes -(1/n) sum log[p F(s z) + (1 - p) F(-s z)], s = 2 report - 1."""
    truth, signs = expit(values["epsilon"]), 2 * report - 1

    def objective(theta):
        z = signs * (features @ theta)
        likelihood = truth * expit(z) + (1 - truth) * expit(-z)
        slope = (2 * truth - 1) * expit(z) * expit(-z) / likelihood
        return -np.log(likelihood).mean(), -(slope * signs) @ features / len(z)

    return minimum(objective, features.shape[1], values["radius"])


def choice_minimum(values, features, statistic):
    """Minimises (1/n) sum log sum_k e^{phi_k.theta} - S.theta / n over the ball."""
    n = len(features)

    def objective(theta):
        margins = features @ theta
        mean = np.einsum("nk,nkd->d", softmax(margins, axis=1), features)
        return (np.sum(np.asarray(logsumexp(margins, axis=1))) - statistic @ theta) / n, (mean - statistic) / n

    return minimum(objective, features.shape[2], values["radius"])


def one_hot_weights(values, report, num_actions):
    weight = math.exp(values["epsilon"]) + num_actions - 1
    p, q = math.exp(values["epsilon"]) / weight, 1 / weight
    return ((np.arange(num_actions) == report[:, None]) - q) / (p - q)


# Fits in one pass.


def one_pass(values, features, gradient):
    """Iterates theta <- P(theta - eta g_t) from zero; returns the average of the last half of the iterates."""
    theta, iterates = np.zeros(features.shape[-1]), []
    for t in range(len(features)):
        theta = theta - RATE * gradient(t, theta)
        theta = theta / max(1, np.linalg.norm(theta) / values["radius"])
        iterates.append(theta)
    return np.mean(iterates[len(features) // 2 :], axis=0)


def last_iterate(values, features, gradient):
    """Iterates as `one_pass` does, without averaging."""
    theta = np.zeros(features.shape[-1])
    for t in range(len(features)):
        theta = theta - RATE * gradient(t, theta)
        theta = theta / max(1, np.linalg.norm(theta) / values["radius"])
    return theta


def weighted_gradient(log_gradients, report, epsilon):
    """Computes eq.

    (10): sum_y grad log p_y / (e^eps + K - 1) - grad log p_report; rows of log_gradients are the labels'.
    """
    weight = math.exp(epsilon) + len(log_gradients) - 1
    return log_gradients.sum(0) / weight - log_gradients[report]


def sgd(values, features, report):
    return one_pass(values, features, lambda t, th: (expit(features[t] @ th) - report[t]) * features[t])


def sgd_rr(values, features, report):
    def gradient(t, theta):
        z = features[t] @ theta
        return weighted_gradient(np.outer([-expit(z), expit(-z)], features[t]), report[t], values["epsilon"])

    return one_pass(values, features, gradient)


def thurstone_rr(values, features, report):
    def gradient(t, theta):
        z = features[t] @ theta
        log_density = -z * z / 2 - math.log(2 * math.pi) / 2
        ratios = [-math.exp(log_density - log_ndtr(-z)), math.exp(log_density - log_ndtr(z))]
        return weighted_gradient(np.outer(ratios, features[t]), report[t], values["epsilon"])

    return one_pass(values, features, gradient)


def sgd_krr(values, features, report):
    def gradient(t, theta):
        phi = features[t]
        return weighted_gradient(phi - softmax(phi @ theta) @ phi, report[t], values["epsilon"])

    return one_pass(values, features, gradient)


def sgd_statistic(values, features, report):
    n = len(features)
    return one_pass(values, features, lambda t, th: expit(features[t] @ th) * features[t] - report / n)


def literal(values, features, report):
    labels, w = report
    n = len(features)
    return last_iterate(values, features, lambda t, th: (expit(features[t] @ th) - labels[t]) * features[t] + w / n)


def given(values: Any, features: np.ndarray, report: Any) -> np.ndarray:
    """Returns the report as the estimate."""
    return report.theta


def relative(features):
    return features - features.mean(1, keepdims=True)


GOLDEN = {
    "mle": Golden(clear, lambda v, x, r: logistic_minimum(v, x, r @ x)),
    "mle_rr": Golden(binary_response, randomized_likelihood),
    "debiased_rr": Golden(binary_response, lambda v, x, r: logistic_minimum(v, x, unbiased(v, r) @ x)),
    "sgd": Golden(clear, sgd),
    "sgd_rr": Golden(binary_response, sgd_rr),
    "objective_perturbation": Golden(noisy_statistic, logistic_minimum),
    "objective_perturbation_whitened": Golden(whitened_statistic, whitened_minimum),
    "sgd_objective_perturbation": Golden(noisy_statistic, sgd_statistic),
    "literal_objective_perturbation": Golden(labels_and_noise, literal),
    "objective_perturbation_full": Golden(private_minimisers, given),
    "thurstone_rr": Golden(binary_response, thurstone_rr),
    "plackett_luce_mle": Golden(clear, lambda v, x, r: choice_minimum(v, x, x[np.arange(len(r)), r].sum(0))),
    "plackett_luce_debiased_krr": Golden(
        k_ary_response,
        lambda v, x, r: choice_minimum(v, x, np.einsum("nk,nkd->d", one_hot_weights(v, r, x.shape[1]), x)),
    ),
    "plackett_luce_objective_perturbation": Golden(
        noisy_choice_statistic, lambda v, x, r: choice_minimum(v, relative(x), r)
    ),
    "sgd_krr": Golden(k_ary_response, sgd_krr),
}

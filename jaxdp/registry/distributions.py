"""Exact output distributions of mechanisms with few outputs, computed from their definitions, and common helpers.

No function here calls the code of a mechanism. Each public `..._distribution` takes an entry's params, one of the
entry's two neighbours, and sizes or a variant of the entry. It computes on the host in float64, and returns a mapping
from each output, as `jaxdp.audit.enumeration.as_outcome` converts it, to its probability.
"""

import math
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from jaxdp.audit.exact import OutputDistribution

REACH = 45.0  # integrals are cut off at this number of noise scales, which neglects a mass of about exp(-45)


def label_distribution(params: Any, data: Any, *, num_labels: int) -> OutputDistribution:
    """Returns the distribution of randomized response to the label `data`, which is clipped to [0, num_labels).

    The clipped label is e^epsilon times as likely as any other label.
    """
    label, odds = min(max(int(data), 0), num_labels - 1), math.exp(-budget_of(params))
    weights = [1.0 if report == label else odds for report in range(num_labels)]
    return dict(enumerate(np.divide(weights, math.fsum(weights)).tolist()))


def noisy_max_distribution(params: Any, data: Any, *, noise: str) -> OutputDistribution:
    """Returns the distribution of the index of the largest score, if noise is added to the scores `data` [n].

    Scores have sensitivity 1, and epsilon is the privacy budget in `params`. `noise` selects the mechanism:
    "gumbel" is the exponential mechanism, with probabilities proportional to exp(epsilon score / 2). "exponential" is
    permute-and-flip: it visits scores in random order, accepts each with probability exp(epsilon (score - largest) /
    2), and selects the first accepted score. "laplace" adds Laplace noise of scale 2 / epsilon; the probabilities are
    integrals over the winner's noise.
    """
    scores = np.asarray(data, np.float64) * budget_of(params) / 2
    if noise == "laplace":
        return dict(enumerate(largest_with_laplace(scores)))
    if noise == "gumbel":
        return dict(enumerate(softmax(scores).tolist()))
    accepted = np.exp(scores - scores.max())
    # The position of each score in the order is uniform in [0, 1]. If j has position t, another score i comes earlier
    # and is accepted with probability t accepted[i]. Gauss quadrature is exact for the polynomial in t.
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    rejected = 1 - np.outer((nodes + 1) / 2, accepted)
    none_before = [np.delete(rejected, j, axis=1).prod(axis=1) @ weights / 2 for j in range(len(scores))]
    return dict(enumerate((accepted * none_before).tolist()))


def above_threshold_distribution(params: Any, data: Any, *, split: str) -> OutputDistribution:
    """Returns the distribution of the index of the first noisy query above the noisy threshold 1/2.

    `data` [n] are the queries, of sensitivity 1. If no query is above, the index is the number of queries. The
    threshold gets a part of epsilon: half if `split` is "even", and otherwise epsilon / (1 + 2^(2/3)). The threshold
    gets Laplace noise of scale 1 / part; each query gets Laplace noise of scale 2 / (epsilon - part).
    """
    # Given the noise of the threshold, queries are independent; the distribution is an integral over that noise.
    queries, epsilon = np.asarray(data, np.float64), budget_of(params)
    first = epsilon / 2 if split == "even" else epsilon / (1 + 2 ** (2 / 3))
    threshold_scale, query_scale = 1 / first, 2 / (epsilon - first)

    def conditional(threshold: np.ndarray) -> np.ndarray:
        behind = (threshold[:, None] - queries) / query_scale
        before = np.cumprod(_laplace_cdf(behind), axis=1)
        reached = np.concatenate([np.ones_like(before[:, :1]), before], axis=1)
        return reached * np.concatenate([_laplace_cdf(-behind), np.ones_like(before[:, :1])], axis=1)

    kinks = np.concatenate([[0.5], queries])
    threshold, weights = _quadrature(kinks, min(threshold_scale, query_scale), REACH * threshold_scale)
    density = np.exp(-np.abs(threshold - 0.5) / threshold_scale) / (2 * threshold_scale)
    return dict(enumerate(((weights * density) @ conditional(threshold)).tolist()))


def largest_with_laplace(scores: np.ndarray) -> list[float]:
    """Returns, for each score, the probability that it is the largest after Laplace noise of scale 1 on all scores."""
    nodes, weights = _quadrature(scores, 1.0, REACH)
    behind = nodes[:, None] - scores
    density, below = np.exp(-np.abs(behind)) / 2, _laplace_cdf(behind)
    return [float((weights * density[:, j]) @ np.delete(below, j, axis=1).prod(axis=1)) for j in range(len(scores))]


def budget_of(params: Any) -> float:
    """Returns the privacy budget: `params.epsilon`, or `params` itself if it is a number."""
    return float(getattr(params, "epsilon", params))


def two_ends(fraction: float, epsilon: float) -> tuple[float, float]:
    """Returns the probabilities of the reports `high` and `low` for the number low + fraction * (high - low).

    For a number at one end of the interval, this end is reported e^epsilon times as often as the opposite end; the
    probabilities are linear in the fraction. No probability is computed by a subtraction from 1.
    """
    likely, unlikely = float(expit(epsilon)), float(expit(-epsilon))
    return fraction * likely + (1 - fraction) * unlikely, fraction * unlikely + (1 - fraction) * likely


def clip_number(value: float, low: float, high: float) -> float:
    """Clips a number to an interval; NaN becomes `low`."""
    return min(max(value, low), high) if value == value else low


def _laplace_cdf(values: np.ndarray) -> np.ndarray:
    """Returns the distribution function of Laplace noise of scale 1."""
    tail = np.exp(-np.abs(values)) / 2
    return np.where(values < 0, tail, 1 - tail)


def _quadrature(kinks: np.ndarray, longest: float, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Returns nodes and weights for the integral of a function that is negligible farther than `reach` from all kinks.

    The function must be smooth between its kinks [n], and change only by a small factor over the length `longest`.
    Within `reach` of a kink, intervals of Gauss quadrature have at most this length.
    """
    count = math.ceil(reach / longest)
    offsets = np.arange(-count, count + 1) * longest
    edges = np.unique(np.add.outer(kinks, offsets))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    widths = np.diff(edges)
    return (edges[:-1, None] + np.outer(widths, (nodes + 1) / 2)).ravel(), np.outer(widths, weights / 2).ravel()

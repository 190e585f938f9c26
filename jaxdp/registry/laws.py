"""Exact laws of mechanisms whose outputs are few, written from their definitions, and what laws have in common.

No law here calls the code of the mechanism that it is the law of. Each is a function (params, data, **sizes) of an
entry's params and of one of its neighbours, on the host in float64, and returns probabilities by `outcome` of the
output; of a learner by `outcome` of what is `seen` of its transcript.
"""

import math
from typing import Any

import numpy as np
from scipy.special import expit, softmax

from jaxdp.audit.exact import Law

REACH = 45.0  # scales of noise beyond which nothing is integrated: exp(-45) of it is there


def label_law(params: Any, data: Any, *, num_labels: int) -> Law:
    """Of randomized response: the label, clipped to [0, K), is e^epsilon times as likely as any other."""
    label, odds = min(max(int(data), 0), num_labels - 1), math.exp(-budget_of(params))
    weights = [1.0 if report == label else odds for report in range(num_labels)]
    return dict(enumerate(np.divide(weights, math.fsum(weights)).tolist()))


def noisy_max_law(params: Any, data: Any, *, noise: str) -> Law:
    """Of the index of the largest of noisy scores of sensitivity 1.

    "gumbel" is the exponential mechanism, of probabilities in proportion to exp(epsilon score / 2). "exponential" is
    permute-and-flip: scores are visited in random order, and the first is taken that a coin of bias
    exp(epsilon (score - largest) / 2) accepts. "laplace" is an integral over the winner's noise.
    """
    scores = np.asarray(data, np.float64) * budget_of(params) / 2
    if noise == "laplace":
        return dict(enumerate(largest_with_laplace(scores)))
    if noise == "gumbel":
        return dict(enumerate(softmax(scores).tolist()))
    accepted = np.exp(scores - scores.max())
    # Each score's place in the order is uniform in [0, 1]. If j has place t, another comes earlier and is accepted with
    # probability t accepted[i]. Gauss's formula is exact for the polynomial in t.
    nodes, weights = np.polynomial.legendre.leggauss(len(scores) // 2 + 1)
    turned_down = 1 - np.outer((nodes + 1) / 2, accepted)
    none_before = [np.delete(turned_down, j, axis=1).prod(axis=1) @ weights / 2 for j in range(len(scores))]
    return dict(enumerate((accepted * none_before).tolist()))


def above_threshold_law(params: Any, data: Any, *, split: str) -> Law:
    """Of the index of the first noisy query above the noisy threshold 1/2; the number of queries if none is.

    Given the threshold's noise the queries are independent; an integral over it is the law.
    """
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
    """The probability of each score to be the largest after Laplace noise of scale 1, which each gets."""
    x, weights = _quadrature(scores, 1.0, REACH)
    behind = x[:, None] - scores
    density, below = np.exp(-np.abs(behind)) / 2, _laplace_cdf(behind)
    return [float((weights * density[:, j]) @ np.delete(below, j, axis=1).prod(axis=1)) for j in range(len(scores))]


def budget_of(params: Any) -> float:
    """The budget that params hold, or are."""
    return float(getattr(params, "epsilon", params))


def two_ends(share: float, epsilon: float) -> tuple[float, float]:
    """Probabilities of the upper and of the lower end, for a number at this share of the way up; each is precise.

    At an end that end is e^epsilon times as likely as the other; in between, the mean is a straight line.
    """
    likely, unlikely = float(expit(epsilon)), float(expit(-epsilon))
    return share * likely + (1 - share) * unlikely, share * unlikely + (1 - share) * likely


def clipped(value: float, low: float, high: float) -> float:
    """The number within an interval."""
    return min(max(value, low), high) if value == value else low  # NaN is low


def _laplace_cdf(x: np.ndarray) -> np.ndarray:
    """Of scale 1."""
    tail = np.exp(-np.abs(x)) / 2
    return np.where(x < 0, tail, 1 - tail)


def _quadrature(kinks: np.ndarray, unit: float, reach: float) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights of an integral of what is smooth between kinks, and nothing far from all of them.

    Args:
        kinks: [num_kinks] float.
        unit: > 0, over which what is integrated changes by a small factor.
        reach: how far from a kink it matters.

    Returns:
        (places, weights), each [num_places] float: Gauss's formula on intervals no longer than a unit.
    """
    offsets = np.arange(-math.ceil(reach / unit), math.ceil(reach / unit) + 1) * unit
    edges = np.unique(np.add.outer(kinks, offsets))
    nodes, weights = np.polynomial.legendre.leggauss(16)
    widths = np.diff(edges)
    return (edges[:-1, None] + np.outer(widths, (nodes + 1) / 2)).ravel(), np.outer(widths, weights / 2).ravel()

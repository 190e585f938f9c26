"""An independent NumPy version of phased elimination by optimal designs, in float64, many lanes side by side.

Written from the paper and its corrections. Lanes with the same active arms in the same phase play the same duels.
"""

import itertools
import math
from typing import NamedTuple

import numpy as np


class Played(NamedTuple):
    """The outcome of a run.

    Attributes:
        first: [lanes, dim], the model after the first phase.
        kept_first: [lanes, num_arms] bool, the arms that were left after it.
        active: [lanes, num_arms] bool, those that were left in the end.
        phases: [lanes], phases that were played.
        rounds: [lanes], duels that they took.
    """

    first: np.ndarray
    kept_first: np.ndarray
    active: np.ndarray
    phases: np.ndarray
    rounds: np.ndarray


def optimal_weights(points):
    """Returns weights and rank of a D-optimal design of points [number, dim], by multiplicative steps in their span."""
    _, sizes, axes = np.linalg.svd(points, full_matrices=False)
    rank = int((sizes > 1e-9 * sizes[0]).sum())
    inside = points @ axes[:rank].T
    weights = np.full(len(points), 1 / len(points))
    for _ in range(20_000):
        inverse = np.linalg.inv((inside * weights[:, None]).T @ inside)
        weights *= np.einsum("ki,ij,kj->k", inside, inverse, inside) / rank
        weights /= weights.sum()
    kept = weights > 1e-4
    return np.where(kept, weights, 0) / weights[kept].sum(), rank


def number_of_duels(epsilon, phase, *, rank, support, value, failure_prob, radius):
    """Finds by bisection the N at which both parts of the radius add up to 2^-phase."""
    slope = math.exp(2 * radius) / (1 + math.exp(2 * radius)) ** 2
    x = math.log(4 * phase**2 / failure_prob)
    a = math.sqrt(rank) + math.sqrt(2 * x)
    b = support + math.sqrt(2 * support * x) + x

    def total(n):
        return a / 2 * math.sqrt(value / n) / slope + value * b / (slope * epsilon * n)

    low, high = 1e-9, 1e18
    for _ in range(300):
        middle = math.sqrt(low * high)
        low, high = (middle, high) if total(middle) > 2.0**-phase else (low, middle)
    return high


def model_in_ball(points, plays, wins, radius):
    """Takes projected gradient steps with momentum, [lanes, dim]; wins are [lanes, number]."""
    total = plays.sum()
    shares, won = plays / total, wins / total
    step = 4 / np.linalg.eigvalsh((points * shares[:, None]).T @ points).max()
    now = ahead = np.zeros((len(wins), points.shape[1]))
    for t in range(1, 1500):
        slope = (shares / (1 + np.exp(-ahead @ points.T)) - won) @ points
        new = ahead - step * slope
        new *= np.minimum(1, radius / np.maximum(np.linalg.norm(new, axis=1, keepdims=True), 1e-300))
        ahead, now = new + (t - 1) / (t + 2) * (new - now), new
    return now


def g_optimal_elimination(generator, epsilon, *, features, weights, failure_prob, multiplier, radius, phases, lanes):
    features = np.asarray(features)
    num, utilities = len(features), features @ np.asarray(weights)
    active, rounds, played = np.ones((lanes, num), bool), np.zeros(lanes), np.zeros(lanes)
    first, kept_first = np.zeros((lanes, features.shape[1])), None
    for phase in range(1, phases + 1):
        after = active.copy()
        for members in np.unique(active, axis=0):
            arms = np.flatnonzero(members)
            mine = np.flatnonzero((active == members).all(1))
            if len(arms) < 2:
                continue
            pairs = np.array(list(itertools.combinations(arms, 2)))
            points = features[pairs[:, 0]] - features[pairs[:, 1]]
            design, rank = optimal_weights(points)
            number = multiplier * number_of_duels(
                epsilon,
                phase,
                rank=rank,
                support=(design > 0).sum(),
                value=rank,
                failure_prob=failure_prob,
                radius=radius,
            )
            plays = np.ceil(number * design - 1e-6)
            chances = 1 / (1 + np.exp(utilities[pairs[:, 1]] - utilities[pairs[:, 0]]))
            wins = generator.binomial(plays.astype(int), chances, (len(mine), len(pairs))).astype(float)
            if epsilon < math.inf:
                wins += generator.laplace(0, 1 / epsilon, wins.shape)
            model = model_in_ball(points, plays, wins, radius)
            estimated = np.where(members, model @ features.T, -np.inf)
            after[mine] &= estimated >= estimated.max(1, keepdims=True) - 0.5**phase
            rounds[mine] += plays.sum()
            played[mine] += 1
            if phase == 1:
                first[mine] = model
        active = after
        if phase == 1:
            kept_first = active.copy()
    assert kept_first is not None
    return Played(first, kept_first, active, played, rounds)

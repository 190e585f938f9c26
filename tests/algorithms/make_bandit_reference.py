"""Independent NumPy versions of the two small learners, and the reference values made from them.

Written from the docstrings, in float64, with NumPy's random numbers. Run this file to make bandit_reference.json again:
means and standard errors of the regret, and of how often the best arm or expert is played.
"""

import json
import math
from pathlib import Path

import numpy as np

PATH = Path(__file__).with_name("bandit_reference.json")
LANES = 20_000
EPSILONS = (0.5, 2.0, math.inf)
COMMIT = {"means": [0.35, 0.5, 0.65], "explore_rounds": 30, "horizon": 200}
EXPERTS = {"means": [0.2, 0.5, 0.5, 0.7], "horizon": 400}


def laplace(generator, scale, shape):
    return generator.laplace(0.0, scale, shape) if scale > 0 else np.zeros(shape)


def explore_then_commit(generator, epsilon, *, means, explore_rounds, horizon):
    """Plays every arm in turn; then the arm with the largest total of rewards plus Laplace(1 / epsilon)."""
    means = np.asarray(means)
    each = explore_rounds // len(means)
    rewards = generator.random((LANES, each, len(means))) < means
    noisy = rewards.sum(1) + laplace(generator, 1 / epsilon, (LANES, len(means)))
    tied = noisy == noisy.max(1, keepdims=True)
    committed = np.where(tied, np.random.default_rng(1).random(noisy.shape), -1).argmax(1)  # of equal totals any
    rest = horizon - explore_rounds
    best_plays = each + rest * (committed == means.argmax())
    gaps = means.max() - means
    return {"pseudo_regret": each * gaps.sum() + rest * gaps[committed], "best_plays": best_plays}


def exponential_weights(generator, epsilon, *, means, horizon):
    """Plays expert i with probability proportional to exp(-rate * total noisy loss of i).

    Noise Laplace(N / epsilon).
    """
    means = np.asarray(means)
    num = len(means)
    variance = 2 * (num / epsilon) ** 2
    rate = math.sqrt(math.log(num) / (horizon * (1 / 8 + variance / 2)))
    totals, regret, best_plays = np.zeros((LANES, num)), np.zeros(LANES), np.zeros(LANES)
    for _ in range(horizon):
        weights = np.exp(-rate * (totals - totals.min(1, keepdims=True)))
        edges = np.cumsum(weights / weights.sum(1, keepdims=True), axis=1)
        played = np.minimum((generator.random((LANES, 1)) > edges).sum(1), num - 1)
        regret += means[played] - means.min()
        best_plays += played == means.argmin()
        totals += (generator.random((LANES, num)) < means) + laplace(generator, num / epsilon, (LANES, num))
    return {"pseudo_regret": regret, "best_plays": best_plays}


def make() -> dict:
    generator = np.random.default_rng(20240601)
    reference: dict = {}
    for name, learner, problem in (
        ("explore_then_commit", explore_then_commit, COMMIT),
        ("exponential_weights", exponential_weights, EXPERTS),
    ):
        reference[name] = {}
        for epsilon in EPSILONS:
            found = learner(generator, epsilon, **problem)
            reference[name][str(epsilon)] = {
                output: {
                    "mean": float(values.mean()),
                    "standard_error": float(values.std(ddof=1) / math.sqrt(LANES)),
                    "quartiles": [float(value) for value in np.quantile(values, [0.25, 0.5, 0.75])],
                }
                for output, values in found.items()
            }
    return reference


if __name__ == "__main__":
    PATH.write_text(json.dumps(make(), indent=1) + "\n")

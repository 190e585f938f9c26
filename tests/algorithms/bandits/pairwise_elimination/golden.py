"""An independent version of `pairwise_elimination`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.golden_best_arm import outputs


def pairwise_elimination(generator, lanes, *, means, epsilon, failure_prob, tolerance=0.0, cost=1.0):
    """Plays whole batches; `cost` multiplies the cost of a discordant pair, for planted mistakes."""
    arms, keep = len(means), 1 / (1 + math.exp(-epsilon))
    rates = keep * np.asarray(means) + (1 - keep) * (1 - np.asarray(means))
    effects = [min(epsilon, 3.0) / 2**k for k in range(20)]
    odds = math.exp(4 * tolerance * math.tanh(epsilon / 2))
    limit = (arms - 1) * (2 if tolerance else 1) / failure_prob
    active, near = np.ones((lanes, arms), bool), np.zeros((lanes, arms), bool)
    ones, pairs = np.zeros((lanes, arms)), np.zeros((lanes, arms, arms))
    rounds, plays, seen = np.zeros(lanes), np.zeros((lanes, arms)), 0

    def mean_of(lead, count, of_one):
        return sum(np.exp(effect * lead - cost * count * math.log(of_one(effect))) for effect in effects) / len(effects)

    def fair(effect):
        return math.cosh(effect)

    def uneven(effect):
        return (math.exp(effect) + odds * math.exp(-effect)) / (1 + odds)

    while True:
        runs = (active.sum(axis=1) > 1) & ~near.any(axis=1)
        if not runs.any():
            score = np.where(np.where(near.any(axis=1, keepdims=True), near, active), ones, -np.inf)
            return outputs(rounds, np.argmax(score, axis=1), plays)
        size = max(1, seen // 100)
        seen += size
        batch = generator.binomial(size, rates, (lanes, arms))
        played = active & runs[:, None]
        plays += played * size
        rounds += played.sum(axis=1) * size
        ones += played * batch
        before = active.copy()
        for x in range(arms):
            for y in range(arms):
                both = runs & before[:, x] & before[:, y] & (x != y)
                differ = (batch[:, x] * (size - batch[:, y]) + batch[:, y] * (size - batch[:, x])) / size
                pairs[:, x, y] += both * differ
        close = np.ones((lanes, arms), bool)
        for x in range(arms):
            for y in range(arms):
                both = runs & before[:, x] & before[:, y] & (x != y)
                lead = ones[:, y] - ones[:, x]
                active[both & (mean_of(lead, pairs[:, x, y], fair) >= limit), x] = False
                close[both & (mean_of(lead, pairs[:, x, y], uneven) < limit), y] = False
        near = np.where(runs[:, None], active & close, near)

"""An independent version of `pairwise_elimination_central`, in NumPy."""

import math

import numpy as np

from tests.algorithms.bandits.golden_best_arm import outputs


def stakes_and_weights(epsilon, log_odds_ratio):
    largest = 1 - math.exp(-min(0.85 * epsilon, 3.0))
    if log_odds_ratio is None:
        return [largest / 2**k for k in range(16)], [1 / 16] * 16
    half = log_odds_ratio / 2
    spread = [half * 4 ** (k / 7 - 1) for k in range(15)]
    shares = [stake * math.exp(-((stake / half) ** 2) / 4.5) for stake in spread]
    return [min(stake, largest) for stake in [half, *spread]], [0.5, *(s / sum(shares) / 2 for s in shares)]


def epochs(epsilon, first_look, growth):
    """Yields the length of each epoch."""
    seen = math.ceil(64 + 64 / epsilon)
    if first_look is None:
        first_look = seen + math.ceil(16 + 16 / epsilon**2)
    else:
        seen = max(1, min(seen, first_look // 16))
    yield seen
    yield first_look - seen
    seen = first_look
    while True:
        size = max(1, math.floor(growth * seen), math.floor(min(seen, 4 * math.sqrt(seen) / epsilon)))
        yield size
        seen += size


def pairwise_elimination_central(
    generator,
    lanes,
    *,
    means,
    epsilon,
    failure_prob,
    tolerance=0.0,
    log_odds_ratio=None,
    first_look=None,
    growth=0.1,
    price=1.0,
    horizon=math.inf,
):
    """Plays whole epochs; `price` multiplies the price of noise, for planted mistakes."""
    arms, limit = len(means), (len(means) - 1) * (2 if tolerance else 1) / failure_prob
    stakes, weights = stakes_and_weights(epsilon, log_odds_ratio)
    active, near = np.ones((lanes, arms), bool), np.zeros((lanes, arms), bool)
    ones, plays, rounds, seen = np.zeros((lanes, arms)), np.zeros((lanes, arms)), np.zeros(lanes), 0
    shares = np.zeros((lanes, arms))  # of ones in the first epoch
    wealth = np.zeros((2, arms, arms, len(stakes), lanes))  # logs

    def bet(stake, worse, better, size, rate, margin):
        """Returns the log of the product of what users pay, evaluated at noisy totals."""
        high, low = rate + margin / 2, rate - margin / 2
        win, loss = np.log(1 + stake * (1 - low)), np.log(1 - stake * low)
        lose, gain = np.log(1 - stake * (1 - high)), np.log(1 + stake * high)
        total = better * win + (size - better) * loss + worse * lose + (size - worse) * gain
        if math.isinf(epsilon):
            return total
        noise = [1 / (1 - (slope / epsilon) ** 2) for slope in (win - loss, lose - gain)]
        return total - price * np.log(noise[0] * noise[1])

    for size in epochs(epsilon, first_look, growth):
        runs = (active.sum(axis=1) > 1) & ~near.any(axis=1)
        if not runs.any() or seen > horizon:
            break
        played = active & runs[:, None]
        plays += played * size
        rounds += played.sum(axis=1) * size
        totals = generator.binomial(size, means, (lanes, arms)) + 0.0
        if not math.isinf(epsilon):
            totals += generator.laplace(0, 1 / epsilon, (lanes, arms))
        lost, close = np.zeros((lanes, arms), bool), np.ones((lanes, arms), bool)
        for x in range(arms):
            for y in range(arms):
                if x == y or seen == 0:
                    continue
                both = runs & active[:, x] & active[:, y]
                for kind, margin in enumerate((0.0, tolerance)):
                    edge = max(1e-4, margin / 2)
                    rate = np.clip((shares[:, x] + shares[:, y]) / 2, edge, 1 - edge)
                    for place, stake in enumerate(stakes):
                        wealth[kind, x, y, place] += bet(stake, totals[:, x], totals[:, y], size, rate, margin)
                worse, as_good = np.tensordot(weights, np.exp(np.minimum(wealth[:, x, y], 700)), (0, 1)) >= limit
                lost[:, x] |= both & worse
                close[:, y] &= ~both | as_good
        active &= ~lost
        if seen:
            near = np.where(runs[:, None], active & close, near)
            ones += np.where(played, totals, 0)
        else:
            shares = totals / size
        seen += size
    ended = (active.sum(axis=1) == 1) | near.any(axis=1)
    score = np.where(np.where(near.any(axis=1, keepdims=True), near, active), ones, -np.inf)
    return {**outputs(rounds, np.argmax(score, axis=1), plays), "ended": ended}

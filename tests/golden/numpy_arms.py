"""Independent NumPy versions of the bandits on Bernoulli arms, in float64, all lanes side by side.

Written from the papers and the definitions. Each returns [lanes, num_arms], how often each arm was played.
"""

import math

import numpy as np

from tests.golden.numpy_duels import gaussian_stddev, tsallis_weights


def _factor(epsilon):
    """c = (e^epsilon + 1) / (e^epsilon - 1)."""
    return 1 / math.tanh(epsilon / 2)


def _paid(generator, means, arm):
    return (generator.random(len(arm)) < means[arm]).astype(float)


def _bits(generator, epsilon, paid):
    """Warner's randomized response."""
    keeps = generator.random(len(paid)) < 1 / (1 + math.exp(-epsilon))
    return np.where(keeps, paid, 1 - paid)


def _drawn(generator, weights):
    edges = np.cumsum(weights / weights.sum(1, keepdims=True), axis=1)
    return np.minimum((generator.random((len(weights), 1)) > edges).sum(1), weights.shape[1] - 1)


def _losses(generator, epsilon, paid, report, horizon, delta, failure_prob):
    """In [0, 1]."""
    if report == "rr":
        return 1 - _bits(generator, epsilon, paid)
    if report == "laplace":
        shift = math.log(horizon / failure_prob) / epsilon
        noise = generator.laplace(0, 1 / epsilon, len(paid)) if epsilon < math.inf else 0
    else:
        stddev = gaussian_stddev(epsilon, delta)
        shift, noise = stddev * math.sqrt(2 * math.log(2 * horizon / failure_prob)), generator.normal(0, 1, len(paid))
        noise = stddev * noise
    return np.clip((1 - paid + noise + shift) / (1 + 2 * shift), 0, 1)


def tsallis_inf(
    generator, epsilon, *, means, horizon, lanes, reduced=False, report="rr", delta=None, failure_prob=None
):
    num, rows = len(means), np.arange(lanes)
    totals, played = np.zeros((lanes, num)), np.zeros((lanes, num), int)
    for t in range(1, horizon + 1):
        rate = (4 if reduced else 2) / math.sqrt(t)
        w = tsallis_weights(totals, rate)
        arm = _drawn(generator, w)
        loss = _losses(generator, epsilon, _paid(generator, means, arm), report, horizon, delta, failure_prob)
        base = np.where(w >= rate**2, 0.5, 0.0) if reduced else np.zeros_like(w)
        totals += base
        totals[rows, arm] += (loss - base[rows, arm]) / w[rows, arm]
        played[rows, arm] += 1
    return played


def exp3(generator, epsilon, *, means, horizon, lanes, report="rr", failure_prob=None):
    num, rows = len(means), np.arange(lanes)
    rate = math.sqrt(2 * math.log(num) / (num * horizon))
    totals, played = np.zeros((lanes, num)), np.zeros((lanes, num), int)
    for _ in range(horizon):
        w = np.exp(-rate * (totals - totals.min(1, keepdims=True)))
        w /= w.sum(1, keepdims=True)
        arm = _drawn(generator, w)
        paid = _paid(generator, means, arm)
        totals[rows, arm] += _losses(generator, epsilon, paid, report, horizon, None, failure_prob) / w[rows, arm]
        played[rows, arm] += 1
    return played


def _largest(generator, scores):
    """Returns the index of each row's largest score; of equal ones any, each as likely."""
    tied = scores == scores.max(axis=1, keepdims=True)
    return np.argmax(np.where(tied, generator.random(scores.shape), -1), axis=1)


def ucb(generator, epsilon, *, means, horizon, lanes, rate, report="rr", delta=None):
    num, rows = len(means), np.arange(lanes)
    sums, played = np.zeros((lanes, num)), np.zeros((lanes, num), int)
    stddev = gaussian_stddev(epsilon, delta) if report == "gaussian" else 0.0
    proxy = _factor(epsilon) ** 2 / 4 if report == "rr" else 0.25 + stddev**2
    for t in range(horizon):
        if t < num:
            arm = np.full(lanes, t)
        else:
            arm = _largest(generator, sums / played + np.sqrt(2 * rate * proxy * math.log(t) / played))
        paid = _paid(generator, means, arm)
        if report == "rr":
            said = (_bits(generator, epsilon, paid) - 0.5) * _factor(epsilon) + 0.5
        else:
            said = paid + stddev * generator.normal(0, 1, lanes)
        sums[rows, arm] += said
        played[rows, arm] += 1
    return played


def thompson(generator, epsilon, *, means, horizon, lanes, debiased=False):
    num, rows = len(means), np.arange(lanes)
    ones, played = np.zeros((lanes, num)), np.zeros((lanes, num), int)
    for _ in range(horizon):
        first, second = ones, played - ones
        if debiased:
            with np.errstate(divide="ignore", invalid="ignore"):
                share = np.where(played > 0, (ones / played - 0.5) * _factor(epsilon) + 0.5, 0.5).clip(0, 1)
            first, second = (part * played / _factor(epsilon) ** 2 for part in (share, 1 - share))
        arm = generator.beta(1 + first, 1 + second).argmax(1)
        ones[rows, arm] += _bits(generator, epsilon, _paid(generator, means, arm))
        played[rows, arm] += 1
    return played


def successive_elimination_central(generator, epsilon, *, means, horizon, lanes, failure_prob, multiplier):
    """One lane after the other, an epoch at a time."""
    played = np.zeros((lanes, len(means)), int)
    for lane in range(lanes):
        active, rest, epoch = np.arange(len(means)), horizon, 0
        while rest > 0:
            epoch += 1
            size, gap = len(active), 0.5**epoch
            hoeffding = math.log(8 * size * epoch**2 / failure_prob)
            laplace = math.log(4 * size * epoch**2 / failure_prob) / epsilon
            # sqrt(hoeffding / (2 R)) + laplace / R = gap / 4 by bisection in R
            low, high = 1e-9, 1e12
            for _ in range(200):
                middle = math.sqrt(low * high)
                wide = math.sqrt(hoeffding / (2 * middle)) + laplace / middle > gap / 4
                low, high = (middle, high) if wide else (low, middle)
            each = math.ceil(multiplier * high - 1e-6)
            if size == 1 or each * size > rest:
                in_turn = np.bincount(np.arange(min(rest, size * (rest // size + 1))) % size, minlength=size)
                played[lane, active] += in_turn if size > 1 else rest
                break
            played[lane, active] += each
            rest -= each * size
            noise = generator.laplace(0, 1 / epsilon, size) if epsilon < math.inf else 0
            noisy = generator.binomial(each, means[active]) + noise
            active = active[noisy >= noisy.max() - each * gap / 2]
    return played


def ucb_central_blocks(generator, epsilon, *, means, horizon, lanes, rate):
    """One lane after the other, a block at a time."""
    num = len(means)
    played = np.zeros((lanes, num), int)
    for lane in range(lanes):
        sums, plays, t = np.zeros(num), np.zeros(num, int), 0
        while t < horizon:
            if t < num:
                arm = t
            else:
                x = rate * math.log(t)
                blocks = np.log2(plays) + 1
                noise = (x + blocks * np.log(1 + x / blocks)) * np.sqrt(1 + blocks / x) / epsilon
                arm = int(_largest(generator, (sums / plays + np.sqrt(x / (2 * plays)) + noise / plays)[None])[0])
            each = min(max(plays[arm], 1), horizon - t)
            played[lane, arm] += each
            t += each
            paid = generator.binomial(each, means[arm])
            sums[arm] += paid + (generator.laplace(0, 1 / epsilon) if epsilon < math.inf else 0)
            plays[arm] += each
    return played


def ucb_central_tree(generator, epsilon, *, means, horizon, lanes, rate):
    """Without privacy alone, where the counters are exact: UCB1."""
    assert epsilon == math.inf
    return ucb(generator, epsilon, means=means, horizon=horizon, lanes=lanes, rate=rate)

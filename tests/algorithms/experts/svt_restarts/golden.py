"""An independent version of `svt_restarts`, in NumPy."""

import math

import numpy as np
import scipy.stats

from tests.algorithms.experts.golden_tracking import draw, is_power_of_two, laplace_grid, permute_and_flip, select


class Thresholds:
    """Thresholds of `svt_restarts`, window by window and block by block."""

    def __init__(self, *, num_experts, horizon, epsilon, failure_prob, check_every=1, margin=None):
        b, questions = failure_prob / 5, math.ceil(horizon / check_every)
        self.means = math.log(2 * num_experts * horizon / b)
        self.noise = 2 / (epsilon / 2) * math.log(num_experts * horizon / b)
        self.own = math.log(2 * questions**2 / b) / 2
        self.best = math.log(2 * num_experts * questions**2 / b) / 2
        usual = 32 * (math.log(questions) + math.log(2 * horizon / b)) / epsilon + 1
        self.margin = usual if margin is None else margin

    def per_round(self, local_round):
        """Returns the part of the regret in one round of an epoch, counted from 1, that is attributed to chance."""
        if local_round == 1:
            return 1.0
        samples = 2 ** (int(math.log2(local_round)) - 1)
        return min(1.0, math.sqrt(2 * self.means / samples) + self.noise / samples)

    def of_window(self, first, last):
        """Returns the threshold for local rounds first to last."""
        rounds = last - first + 1
        blocks = sum(self.per_round(each) for each in range(first, last + 1))
        return blocks + math.sqrt(rounds * self.own) + math.sqrt(rounds * self.best)


def beginnings(kind, now, begin):
    """Returns the times, in questions, after which windows begin that end at `now`."""
    if kind == "all":
        return list(range(begin, now))
    times = {begin}
    for level in range(now.bit_length() + 1):
        last = (now - 1) // 2**level
        times |= {2**level * multiple for multiple in (last, last - 1)}
    return sorted(time for time in times if time >= begin)


def svt_restarts_distribution(losses, epsilon, thresholds, *, sensitivity=2.0, selects=True, asks=True):
    """Returns the distribution of experts (of all rounds and of the next one) and of the rounds that end epochs.

    `selects=False` selects uniformly, and `asks=False` never restarts: the remaining leak is the other half's.
    """
    rounds, num_experts = losses.shape
    budget = epsilon / 2
    places, weights = laplace_grid(2 * sensitivity / budget)
    query_noise = scipy.stats.laplace(scale=4 * sensitivity / budget)
    distribution = {}

    def go(played, begin, experts, ends, chances):
        """Goes on with `chances`: the probability of all this and of the epoch's threshold noise, on the grid."""
        if played == rounds:
            distribution[experts, ends] = distribution.get((experts, ends), 0.0) + float(chances.sum())
            return
        played += 1
        of_plays = losses[np.arange(begin, played), list(experts[begin:])]
        excess = [
            np.max((of_plays[first:, None] - losses[begin + first : played]).sum(0))
            - thresholds.of_window(first + 1, played - begin)
            for first in range(played - begin)
        ]
        above = query_noise.sf(places - (max(excess) - thresholds.margin)) if asks else np.zeros_like(places)
        if asks:
            go(played, played, (*experts, experts[-1]), (*ends, played), (chances * above).sum() * weights)
        local = played - begin
        if not is_power_of_two(local + 1):
            chances_of = np.eye(num_experts)[experts[-1]]
        elif selects:
            chances_of = permute_and_flip(losses[begin + (local + 1) // 2 - 1 : played].sum(0), budget)
        else:
            chances_of = np.full(num_experts, 1 / num_experts)
        for expert, of_expert in enumerate(chances_of):
            if of_expert:
                go(played, begin, (*experts, expert), ends, chances * (1 - above) * of_expert)

    for expert in range(num_experts):
        go(0, 0, (expert,), (), weights / num_experts)
    return distribution


def svt_restarts(generator, lanes, means, epsilon, *, failure_prob, margin, windows, check_every):
    """Returns regret and the number of restarts, one lane after the other."""
    horizon, num_experts = means.shape
    thresholds = Thresholds(
        num_experts=num_experts,
        horizon=horizon,
        epsilon=epsilon,
        failure_prob=failure_prob,
        check_every=check_every,
        margin=margin,
    )
    per_round = np.cumsum([0.0, *(thresholds.per_round(local) for local in range(1, horizon + 1))])
    roots = math.sqrt(thresholds.own) + math.sqrt(thresholds.best)
    regrets, restarts = np.zeros(lanes), np.zeros(lanes, int)
    for lane in range(lanes):
        losses = draw(generator, horizon, np.ones(num_experts)) * (generator.random(means.shape) < means)
        begin, expert = 0, int(generator.integers(num_experts))
        threshold = generator.laplace(0, 8 / epsilon) if epsilon < math.inf else 0.0
        excess = np.zeros((horizon + 1, num_experts))  # sums over the epoch, after each round
        for now in range(1, horizon + 1):
            regrets[lane] += means[now - 1, expert] - means[now - 1].min()
            excess[now] = excess[now - 1] + losses[now - 1, expert] - losses[now - 1]
            local = now - begin
            if now % check_every == 0:
                first = check_every * np.asarray(beginnings(windows, now // check_every, begin // check_every))
                slack = per_round[local] - per_round[first - begin] + roots * np.sqrt(now - first)
                query = np.max((excess[now] - excess[first]).max(1) - slack) - thresholds.margin
                noise = generator.laplace(0, 16 / epsilon) if epsilon < math.inf else 0.0
                if query + noise >= threshold:
                    threshold = generator.laplace(0, 8 / epsilon) if epsilon < math.inf else 0.0
                    begin, restarts[lane], excess[now] = now, restarts[lane] + 1, 0.0
                    continue
            if is_power_of_two(local + 1):
                block = losses[begin + (local + 1) // 2 - 1 : now].sum(0)
                expert = int(select(generator, block[None], epsilon / 2)[0])
    return {"pseudo_regret": regrets, "restarts": restarts}

"""Independent NumPy versions of the learners that select from losses in the clear; exact laws and simulations.

Written from the algorithms' definitions, in float64. `*_law` enumerates every transcript of a tiny instance, and
integrates over the noise of thresholds; the others simulate many lanes with NumPy's random numbers.
"""

import itertools
import math

import numpy as np
import scipy.stats

QUADRATURE = np.polynomial.legendre.leggauss(8)


# ---- definitions -----------------------------------------------------------------------------------------------------
def permute_and_flip(totals, epsilon):
    """P(expert): in random order, the first whose coin of probability exp(-epsilon (total - least) / 2) shows heads."""
    heads = np.exp(-epsilon / 2 * (np.asarray(totals) - min(totals)))
    law, orders = np.zeros(len(heads)), list(itertools.permutations(range(len(heads))))
    for order in orders:
        tails = 1.0
        for expert in order:
            law[expert] += tails * heads[expert] / len(orders)
            tails *= 1 - heads[expert]
    return law


def exponential_mechanism(totals, rate):
    weights = np.exp(-rate * (np.asarray(totals) - min(totals)))
    return weights / weights.sum()


def is_power_of_two(number):
    return number & (number - 1) == 0


class Thresholds:
    """Of `svt_restarts`, window by window and block by block."""

    def __init__(self, *, num_experts, horizon, epsilon, failure_prob, check_every=1, margin=None):
        b, questions = failure_prob / 5, math.ceil(horizon / check_every)
        self.means = math.log(2 * num_experts * horizon / b)
        self.noise = 2 / (epsilon / 2) * math.log(num_experts * horizon / b)
        self.own = math.log(2 * questions**2 / b) / 2
        self.best = math.log(2 * num_experts * questions**2 / b) / 2
        usual = 32 * (math.log(questions) + math.log(2 * horizon / b)) / epsilon + 1
        self.margin = usual if margin is None else margin

    def per_round(self, local_round):
        """What is put down to chance in one round of an epoch, counted from 1."""
        if local_round == 1:
            return 1.0
        samples = 2 ** (int(math.log2(local_round)) - 1)
        return min(1.0, math.sqrt(2 * self.means / samples) + self.noise / samples)

    def of_window(self, first, last):
        """For local rounds first to last."""
        rounds = last - first + 1
        blocks = sum(self.per_round(each) for each in range(first, last + 1))
        return blocks + math.sqrt(rounds * self.own) + math.sqrt(rounds * self.best)


def beginnings(kind, now, begin):
    """Times, in questions, after which windows begin that end at `now`."""
    if kind == "all":
        return list(range(begin, now))
    times = {begin}
    for level in range(now.bit_length() + 1):
        last = (now - 1) // 2**level
        times |= {2**level * multiple for multiple in (last, last - 1)}
    return sorted(time for time in times if time >= begin)


# ---- exact laws ------------------------------------------------------------------------------------------------------
def laplace_grid(scale, reach=45.0, panels=300):
    """Nodes and weights that integrate functions of Laplace noise."""
    edges = np.linspace(-reach * scale, reach * scale, panels + 1)
    nodes, weights = QUADRATURE
    places = (edges[:-1, None] + np.diff(edges)[:, None] * (nodes + 1) / 2).ravel()
    return places, (np.diff(edges)[:, None] * weights / 2).ravel() * scipy.stats.laplace.pdf(places, scale=scale)


def limited_updates_law(losses, epsilon):
    """Of the experts of all rounds and of the one after the last."""
    num_experts = losses.shape[1]
    law = {(expert,): 1 / num_experts for expert in range(num_experts)}
    for played in range(1, len(losses) + 1):
        grown = {}
        for experts, chance in law.items():
            if is_power_of_two(played + 1):
                chances = permute_and_flip(losses[(played + 1) // 2 - 1 : played].sum(0), epsilon)
            else:
                chances = np.eye(losses.shape[1])[experts[-1]]
            for expert, of_expert in enumerate(chances):
                if of_expert:
                    grown[*experts, expert] = chance * of_expert
        law = grown
    return law


def svt_restarts_law(losses, epsilon, thresholds, *, sensitivity=2.0, selects=True, asks=True):
    """Of experts (of all rounds and of the next one) and of the rounds at whose end epochs end.

    `selects=False` selects uniformly, and `asks=False` never restarts: what is left is the other half's leak.
    """
    rounds, num_experts = losses.shape
    budget = epsilon / 2
    places, weights = laplace_grid(2 * sensitivity / budget)
    query_noise = scipy.stats.laplace(scale=4 * sensitivity / budget)
    law = {}

    def go(played, begin, experts, ends, chances):
        """`chances`: the probability of all this and of the epoch's threshold noise, on the grid."""
        if played == rounds:
            law[experts, ends] = law.get((experts, ends), 0.0) + float(chances.sum())
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
    return law


def limited_updates_oblivious_law(losses, rate, batch):
    """Of the experts of all batches."""
    rounds, num_experts = losses.shape
    law: dict[tuple[int, ...], float] = {(expert,): 1 / num_experts for expert in range(num_experts)}
    for end in range(batch, rounds, batch):
        chances = exponential_mechanism(losses[:end].sum(0), rate)
        law = {
            (*experts, expert): chance * of_expert
            for experts, chance in law.items()
            for expert, of_expert in enumerate(chances)
        }
    return law


def svt_lazy_law(losses, rate, budget, threshold, most):
    """Of the experts of all rounds and of the next one, and of rounds after which the next one is the last."""
    rounds, num_experts = losses.shape
    places, weights = laplace_grid(2 / budget)
    query_noise = scipy.stats.laplace(scale=4 / budget)
    law = {}

    def go(played, since, experts, ends, waiting, chances):
        if played == rounds:
            law[experts, ends] = law.get((experts, ends), 0.0) + float(chances.sum())
            return
        played += 1
        stay = (*experts, experts[-1])
        if waiting:
            for expert, of_expert in enumerate(exponential_mechanism(losses[:played].sum(0), rate)):
                go(played, played, (*experts, expert), ends, False, chances * of_expert)
        elif len(ends) == most:
            go(played, since, stay, ends, False, chances)
        else:
            own = losses[since:played, experts[-1]].sum()
            above = query_noise.sf(places + threshold - own)
            go(played, since, stay, (*ends, played), True, (chances * above).sum() * weights)
            go(played, since, stay, ends, False, chances * (1 - above))

    for expert in range(num_experts):
        go(0, 0, (expert,), (), False, weights / num_experts)
    return law


# ---- simulations -----------------------------------------------------------------------------------------------------
def select(generator, totals, epsilon):
    """The smallest total, by permute-and-flip for all lanes at once: argmax of -total + exponential noise."""
    if math.isinf(epsilon):
        tied = totals == totals.min(axis=1, keepdims=True)
        return np.where(tied, generator.random(totals.shape), -1).argmax(1)  # of equal totals any
    return (generator.exponential(2 / epsilon, totals.shape) - totals).argmax(1)


def draw(generator, lanes, means):
    return (generator.random((lanes, len(means))) < means).astype(float)


def limited_updates(generator, lanes, means, epsilon):
    """`means`: [horizon, num_experts]. Returns regret against each round's best mean, and the last expert."""
    expert = generator.integers(means.shape[1], size=lanes)
    regret, totals = np.zeros(lanes), np.zeros((lanes, means.shape[1]))
    for played, of_round in enumerate(means, start=1):
        regret += of_round[expert] - of_round.min()
        totals += draw(generator, lanes, of_round)
        if is_power_of_two(played + 1):
            expert, totals = select(generator, totals, epsilon), np.zeros_like(totals)
    return {"pseudo_regret": regret, "last": expert}


def svt_restarts(generator, lanes, means, epsilon, *, failure_prob, margin, windows, check_every):
    """Regret, and the number of restarts. One lane after the other."""
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


def limited_updates_oblivious(generator, lanes, means, rate, batch):
    horizon, num_experts = means.shape
    expert, regret = generator.integers(num_experts, size=lanes), np.zeros(lanes)
    totals = np.zeros((lanes, num_experts))
    for played, of_round in enumerate(means, start=1):
        regret += of_round[expert] - of_round.min()
        totals += draw(generator, lanes, of_round)
        if played % batch == 0 and played < horizon:
            expert = (generator.gumbel(0, 1 / rate, totals.shape) - totals).argmax(1)
    return {"pseudo_regret": regret, "last": expert}


def svt_lazy(generator, lanes, means, rate, budget, threshold, most):
    num_experts = means.shape[1]
    expert, regret, switches = generator.integers(num_experts, size=lanes), np.zeros(lanes), np.zeros(lanes, int)
    totals, own, waiting = np.zeros((lanes, num_experts)), np.zeros(lanes), np.zeros(lanes, bool)
    level = threshold + generator.laplace(0, 2 / budget, lanes)
    for of_round in means:
        regret += of_round[expert] - of_round.min()
        losses = draw(generator, lanes, of_round)
        totals += losses
        own += losses[np.arange(lanes), expert]
        above = (own + generator.laplace(0, 4 / budget, lanes) >= level) & ~waiting & (switches < most)
        chosen = (generator.gumbel(0, 1 / rate, totals.shape) - totals).argmax(1)
        expert, switches = np.where(waiting, chosen, expert), switches + waiting
        own = np.where(waiting, 0.0, own)
        level = np.where(waiting, threshold + generator.laplace(0, 2 / budget, lanes), level)
        waiting = above
    return {"pseudo_regret": regret, "switches": switches}

"""An independent version of `svt_lazy`, in NumPy."""

import numpy as np
import scipy.stats

from tests.algorithms.experts.golden_tracking import draw, exponential_mechanism, laplace_grid


def svt_lazy_distribution(losses, rate, budget, threshold, most):
    """Returns the distribution of the experts of all rounds and of the next one, and of rounds before a run's last."""
    rounds, num_experts = losses.shape
    places, weights = laplace_grid(2 / budget)
    query_noise = scipy.stats.laplace(scale=4 / budget)
    distribution = {}

    def go(played, since, experts, ends, waiting, chances):
        if played == rounds:
            distribution[experts, ends] = distribution.get((experts, ends), 0.0) + float(chances.sum())
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
    return distribution


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

"""An independent version of `limited_updates`, in NumPy."""

import numpy as np

from tests.algorithms.experts.golden_tracking import draw, is_power_of_two, permute_and_flip, select


def limited_updates_distribution(losses, epsilon):
    """Returns the distribution of the experts of all rounds and of the one after the last."""
    num_experts = losses.shape[1]
    distribution = {(expert,): 1 / num_experts for expert in range(num_experts)}
    for played in range(1, len(losses) + 1):
        grown = {}
        for experts, chance in distribution.items():
            if is_power_of_two(played + 1):
                chances = permute_and_flip(losses[(played + 1) // 2 - 1 : played].sum(0), epsilon)
            else:
                chances = np.eye(losses.shape[1])[experts[-1]]
            for expert, of_expert in enumerate(chances):
                if of_expert:
                    grown[*experts, expert] = chance * of_expert
        distribution = grown
    return distribution


def limited_updates(generator, lanes, means, epsilon):
    """Simulates for `means` [horizon, num_experts]: regret against each round's best mean, and the last expert."""
    expert = generator.integers(means.shape[1], size=lanes)
    regret, totals = np.zeros(lanes), np.zeros((lanes, means.shape[1]))
    for played, of_round in enumerate(means, start=1):
        regret += of_round[expert] - of_round.min()
        totals += draw(generator, lanes, of_round)
        if is_power_of_two(played + 1):
            expert, totals = select(generator, totals, epsilon), np.zeros_like(totals)
    return {"pseudo_regret": regret, "last": expert}

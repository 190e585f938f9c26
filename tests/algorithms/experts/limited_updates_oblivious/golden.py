"""An independent version of `limited_updates_oblivious`, in NumPy."""

import numpy as np

from tests.algorithms.experts.golden_tracking import draw, exponential_mechanism


def limited_updates_oblivious_distribution(losses, rate, batch):
    """Returns the distribution of the experts of all batches."""
    rounds, num_experts = losses.shape
    distribution: dict[tuple[int, ...], float] = {(expert,): 1 / num_experts for expert in range(num_experts)}
    for end in range(batch, rounds, batch):
        chances = exponential_mechanism(losses[:end].sum(0), rate)
        distribution = {
            (*experts, expert): chance * of_expert
            for experts, chance in distribution.items()
            for expert, of_expert in enumerate(chances)
        }
    return distribution


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

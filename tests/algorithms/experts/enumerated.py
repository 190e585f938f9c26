"""Classes of sequences by brute force: every sequence written out, with its prior, in NumPy float64."""

import itertools
import math

import numpy as np


def switches_of(sequence):
    return sum(a != b for a, b in itertools.pairwise(sequence))


def markov_prior(sequence, num_experts, rate):
    switches = switches_of(sequence)
    return (rate / (num_experts - 1)) ** switches * (1 - rate) ** (len(sequence) - 1 - switches) / num_experts


def members(name, num_experts, horizon, num_switches=0, rate=0.5):
    """Returns {(row of the sequence's state or None, sequence): prior}."""
    every = itertools.product(range(num_experts), repeat=horizon)
    if name == "markov":
        return {(0, e): markov_prior(e, num_experts, rate) for e in every}
    if name == "mixture":
        rates = 2.0 ** -np.arange(1, max(1, math.ceil(math.log2(horizon))) + 1)
        return {(k, e): markov_prior(e, num_experts, rate) / len(rates) for e in every for k, rate in enumerate(rates)}
    most = 0 if name == "static" else num_switches
    listed = [e for e in every if switches_of(e) <= most]
    return {(None, e): 1 / len(listed) for e in listed}


def state(member, round):
    """Returns (row, expert) of a sequence at `round`."""
    row, sequence = member
    return (switches_of(sequence[: round + 1]) if row is None else row), sequence[round]


def weights(prior, scaled, round):
    """Weights of all sequences before the losses of `round`; `scaled` is [horizon, num_experts]."""
    return {member: p * math.exp(-sum(scaled[s][member[1][s]] for s in range(round))) for member, p in prior.items()}


def transcript_distribution(prior, losses, *, rate, fake, batch, budget):
    """Returns the distribution of lazy weights' releases: {((sequence, resampled), ...) for each batch: probability}.

    `prior` is of the class over batches, `losses` are [horizon, num_experts].
    """
    totals = [losses[start : start + batch].sum(0) for start in range(0, len(losses), batch)]
    distribution = {((member, False),): p for member, p in prior.items()}
    for end in range(1, len(totals)):
        weight = weights(prior, rate * np.asarray(totals), end)
        total = sum(weight.values())
        after = {}
        for released, p in distribution.items():
            member = released[-1][0]
            kept = (1 - fake) * math.exp(-rate * totals[end - 1][member[1][end - 1]])
            if sum(resampled for _, resampled in released) >= budget:
                kept = 1.0
            outcomes = [((member, False), kept)] + [
                ((other, True), (1 - kept) * w / total) for other, w in weight.items()
            ]
            for outcome, chance in outcomes:
                if chance > 0:
                    after[(*released, outcome)] = p * chance
        distribution = after
    return distribution


def seen(distribution):
    """Returns the distribution of the learner's public states: ((row, expert, resamples so far), ...) for each
    batch.
    """
    merged = {}
    for released, p in distribution.items():
        used, told = 0, []
        for step, (member, resampled) in enumerate(released):
            used += resampled
            told.append((*state(member, step), used))
        merged[tuple(told)] = merged.get(tuple(told), 0.0) + p
    return merged

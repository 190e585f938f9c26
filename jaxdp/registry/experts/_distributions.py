"""Functions that several learners of experts use to compute the exact distribution of a run."""

import functools
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.distributions import above_threshold_distribution

Grown = Iterator[tuple[Any, float]]


@functools.lru_cache(maxsize=4096)
def all_below(queries: tuple[float, ...], epsilon: float) -> float:
    """Returns the probability that AboveThreshold with this budget answers "below" to all queries.

    Queries have sensitivity 1, and are given as differences from the threshold.
    """
    if not queries:
        return 1.0
    return above_threshold_distribution(np.float64(epsilon), np.asarray(queries) + 0.5, split="even")[len(queries)]


def losses_of(data: UserData, *, binary: bool = False) -> np.ndarray:
    """Returns losses [num_rounds, num_experts], clipped to [0, 1]; NaN becomes 0. `binary` rounds them to 0 or 1."""
    losses = np.clip(np.nan_to_num(np.asarray(data.answers, np.float64)), 0, 1)
    return np.round(losses) if binary else losses


def distribution_of_rounds(
    rounds: int,
    first: dict[Any, float],
    later: Callable[[int, Any], Grown],
    expert: Callable[[int, Any], int],
    shown: Callable[[int, Any], tuple[Hashable, ...]],
    *,
    has_clock: bool = True,
) -> OutputDistribution:
    """Returns the joint distribution of the plays of all rounds and of the public state after each round.

    Rounds are numbered from 0.

    Args:
        rounds: number of rounds.
        first: states before the first round, each with its probability.
        later: (round, state before the round) -> states after the round, each with its probability.
        expert: (round, state before the round) -> the expert that is played.
        shown: (rounds played, state) -> the content of the public state except the number of rounds played.
        has_clock: whether the public state starts with the number of rounds played.
    """
    distribution: dict[tuple[Any, tuple[Any, ...]], float] = {(state, ()): chance for state, chance in first.items()}
    for round_ in range(rounds):
        grown: dict[tuple[Any, tuple[Any, ...]], float] = {}
        for (state, seen), chance in distribution.items():
            for after, more in later(round_, state):
                clock = (round_ + 1,) if has_clock else ()
                row = (expert(round_, state), *clock, *shown(round_ + 1, after))
                key = after, (*seen, row)
                grown[key] = grown.get(key, 0.0) + chance * more
        distribution = grown
    merged: OutputDistribution = {}
    for (_, seen), chance in distribution.items():
        if chance:
            outcome = tuple(zip(*seen, strict=True))
            merged[outcome] = merged.get(outcome, 0.0) + chance  # pyright: ignore[reportIndexIssue]
    return merged

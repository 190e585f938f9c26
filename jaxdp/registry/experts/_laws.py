"""What exact laws of several learners of experts have in common."""

import functools
from collections.abc import Callable, Hashable, Iterator
from typing import Any

import numpy as np

from jaxdp.audit import Users
from jaxdp.audit.exact import Law
from jaxdp.registry.laws import above_threshold_law

Grown = Iterator[tuple[Any, float]]


@functools.lru_cache(maxsize=4096)
def still_below(questions: tuple[float, ...], epsilon: float) -> float:
    """The probability that AboveThreshold answers "above" to none, of sensitivity 1 and counted from the threshold."""
    if not questions:
        return 1.0
    return above_threshold_law(np.float64(epsilon), np.asarray(questions) + 0.5, split="even")[len(questions)]


def losses_of(data: Users, *, binary: bool = False) -> np.ndarray:
    """[num_rounds, num_experts] as learners count them: in [0, 1], NaN is 0."""
    losses = np.clip(np.nan_to_num(np.asarray(data.answers, np.float64)), 0, 1)
    return np.round(losses) if binary else losses


def law_of_rounds(
    rounds: int,
    first: dict[Any, float],
    later: Callable[[int, Any], Grown],
    expert: Callable[[int, Any], int],
    shown: Callable[[int, Any], tuple[Hashable, ...]],
    *,
    has_clock: bool = True,
) -> Law:
    """Of what is seen of all rounds, round after round: plays, rounds played, and what else is in `public`.

    Args:
        rounds: how many there are.
        first: what may be before the first round, with its probability.
        later: (round, what was before it) -> what may be after it, with its probability.
        expert: (round, what was before it) -> who plays it.
        shown: (rounds played, what is) -> what is in `public` besides the number of rounds played.
        has_clock: whether the number of rounds played is there, before the rest.
    """
    law: dict[tuple[Any, tuple[Any, ...]], float] = {(state, ()): chance for state, chance in first.items()}
    for round_ in range(rounds):
        grown: dict[tuple[Any, tuple[Any, ...]], float] = {}
        for (state, seen), chance in law.items():
            for after, more in later(round_, state):
                clock = (round_ + 1,) if has_clock else ()
                row = (expert(round_, state), *clock, *shown(round_ + 1, after))
                key = after, (*seen, row)
                grown[key] = grown.get(key, 0.0) + chance * more
        law = grown
    merged: Law = {}
    for (_, seen), chance in law.items():
        if chance:
            outcome = tuple(zip(*seen, strict=True))
            merged[outcome] = merged.get(outcome, 0.0) + chance  # pyright: ignore[reportIndexIssue]
    return merged

"""Exact laws of learners of experts in tiny worlds, written from the definitions of the algorithms; see `laws`."""

import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from jaxdp.audit import Users
from jaxdp.audit.exact import Law
from jaxdp.registry.laws import noisy_max_law

Sequence = tuple[int, ...]
Grown = Iterator[tuple[Any, float]]


class Played(NamedTuple):
    """Of a sequence of experts what is seen while it plays, and how often one was drawn anew."""

    sequence: Sequence
    resamples: int


def lazy_weights_law(params: Any, data: Users, *, num_experts: int, horizon: int, sequences: Any = None) -> Law:
    """Of a sequence that is kept after a batch with probability (1 - p) exp(-rate own loss), else drawn by weight.

    Every sequence of the class is written out, with its prior.
    """
    rate, fake = float(params.learning_rate), float(params.fake_switch_prob)
    batch, budget, losses = int(params.batch), int(params.budget), _losses(data)
    prior = _prior(sequences, num_experts, -(-horizon // batch))

    def later(round_: int, played: Played) -> Grown:
        step, ends = divmod(round_ + 1, batch)
        if ends or round_ + 1 >= horizon:
            yield played, 1.0
            return
        kept = 1.0
        if played.resamples < budget:
            own = losses[round_ + 1 - batch : round_ + 1, played.sequence[step - 1]].sum()
            kept = (1 - fake) * math.exp(-rate * own)
        yield played, kept
        totals = losses[: round_ + 1].reshape(step, batch, num_experts).sum(axis=1)
        weights = {each: p * math.exp(-rate * sum(totals[range(step), each[:step]])) for each, p in prior.items()}
        for each, weight in weights.items():
            yield Played(each, played.resamples + 1), (1 - kept) * weight / math.fsum(weights.values())

    def shown(round_: int, played: Played) -> tuple[Hashable, ...]:
        """Of `public` after so many rounds: the expert, the row of its label, and resamples."""
        step = min(round_, horizon - 1) // batch
        switches = _switches(played.sequence[: step + 1]) if hasattr(sequences, "num_switches") else 0
        return played.sequence[step], switches, played.resamples

    def expert(round_: int, played: Played) -> int:
        return played.sequence[round_ // batch]

    return _law(len(losses), {Played(each, 0): p for each, p in prior.items()}, later, expert, shown)


def limited_updates_law(params: Any, data: Users, *, num_experts: int, losses: str = "bounded") -> Law:
    """Of the expert with the least noisy loss in rounds 2^(k-1) to 2^k - 1, who plays up to round 2^(k+1) - 1."""
    seen, epsilon = _losses(data, binary=losses == "binary"), float(params.epsilon)

    def later(round_: int, expert: int) -> Grown:
        following = round_ + 2  # counted from 1
        if following & (following - 1):
            return iter([(expert, 1.0)])
        totals = seen[following // 2 - 1 : following - 1].sum(axis=0)
        return iter(noisy_max_law(np.float64(epsilon), -totals, noise="exponential").items())

    return _law(len(seen), {0: 1.0}, later, lambda _, expert: expert, lambda _, expert: (expert,))


def limited_updates_oblivious_law(params: Any, data: Users, *, num_experts: int, horizon: int) -> Law:
    """Of the expert who plays through a batch, drawn with odds exp(-rate total) after it."""
    losses, rate, batch = _losses(data), float(params.learning_rate), int(params.batch)

    def later(round_: int, expert: int) -> Grown:
        played = round_ + 1
        if played % batch or played >= horizon:
            return iter([(expert, 1.0)])
        return iter(enumerate(softmax(-rate * losses[:played].sum(axis=0)).tolist()))

    first = dict.fromkeys(range(num_experts), 1 / num_experts)
    return _law(len(losses), first, later, lambda _, expert: expert, lambda _, expert: (expert,))


def _losses(data: Users, *, binary: bool = False) -> np.ndarray:
    """[num_rounds, num_experts] as learners count them: in [0, 1], NaN is 0."""
    losses = np.clip(np.nan_to_num(np.asarray(data.answers, np.float64)), 0, 1)
    return np.round(losses) if binary else losses


def _prior(sequences: Any, num_experts: int, steps: int) -> dict[Sequence, float]:
    """Every sequence of a class, with its probability: equal ones of at most S switches, or a Markov chain's."""
    listed = itertools.product(range(num_experts), repeat=steps)
    rate = getattr(sequences, "switch_rate", None)
    if rate is not None:
        each = rate / (num_experts - 1)
        return {e: each ** _switches(e) * (1 - rate) ** (steps - 1 - _switches(e)) / num_experts for e in listed}
    chosen = [e for e in listed if _switches(e) <= getattr(sequences, "num_switches", 0)]
    return dict.fromkeys(chosen, 1 / len(chosen))


def _switches(sequence: Sequence) -> int:
    return sum(one != other for one, other in itertools.pairwise(sequence))


def _law(
    rounds: int,
    first: dict[Any, float],
    later: Callable[[int, Any], Grown],
    expert: Callable[[int, Any], int],
    shown: Callable[[int, Any], tuple[Hashable, ...]],
) -> Law:
    """Of what is seen of all rounds, round after round: plays, rounds played, and what else is in `public`.

    Args:
        rounds: how many there are.
        first: what may be before the first round, with its probability.
        later: (round, what was before it) -> what may be after it, with its probability.
        expert: (round, what was before it) -> who plays it.
        shown: (rounds played, what is) -> what is in `public` besides the number of rounds played.
    """
    law: dict[tuple[Any, tuple[Any, ...]], float] = {(state, ()): chance for state, chance in first.items()}
    for round_ in range(rounds):
        grown: dict[tuple[Any, tuple[Any, ...]], float] = {}
        for (state, seen), chance in law.items():
            for after, more in later(round_, state):
                row = (expert(round_, state), round_ + 1, *shown(round_ + 1, after))
                key = after, (*seen, row)
                grown[key] = grown.get(key, 0.0) + chance * more
        law = grown
    merged: Law = {}
    for (_, seen), chance in law.items():
        if chance:
            outcome = tuple(zip(*seen, strict=True))
            merged[outcome] = merged.get(outcome, 0.0) + chance  # pyright: ignore[reportIndexIssue]
    return merged

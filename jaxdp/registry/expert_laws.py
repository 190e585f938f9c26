"""Exact laws of learners of experts in tiny worlds, written from the definitions of the algorithms; see `laws`."""

import functools
import itertools
import math
from collections.abc import Callable, Hashable, Iterator
from typing import Any, NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import softmax

from jaxdp.audit import Users
from jaxdp.audit.exact import Law
from jaxdp.registry.laws import above_threshold_law, noisy_max_law

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

    first = dict.fromkeys(range(num_experts), 1 / num_experts)
    return _law(len(seen), first, later, lambda _, expert: expert, lambda _, expert: (expert,))


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


class Epoch(NamedTuple):
    """Of limited updates that begin anew what decides how they go on.

    Attributes:
        begin: rounds before the epoch.
        plays: the experts of its rounds, and of the next one.
        questions: asked in it so far, of which none was answered "above".
        restarts: epochs before it.
    """

    begin: int
    plays: tuple[int, ...]
    questions: tuple[float, ...]
    restarts: int


def svt_restarts_law(params: Any, data: Users, *, num_experts: int, check_every: int = 1) -> Law:
    """Of limited updates at half of epsilon, and of the rounds at whose ends the other half's tests restart them.

    Every `check_every` rounds the largest regret of a dyadic window of the epoch, less its threshold, is asked for, at
    sensitivity 2. The noise of a threshold is integrated over.
    """
    losses, budget = _losses(data), float(params.epsilon) / 2
    slack = np.cumsum([0.0, *(float(params.block_slack[n.bit_length() - 1]) for n in range(1, len(losses) + 1))])

    def question(played: int, epoch: Epoch) -> float:
        now, first, regrets = played // check_every, epoch.begin // check_every, []
        multiples = {2**k * ((now - 1) // 2**k - one) for k in range(now.bit_length() + 1) for one in (0, 1)}
        for begin in (check_every * each for each in multiples | {first} if each >= first):
            own = losses[range(begin, played), epoch.plays[begin - epoch.begin :]].sum()
            chance = slack[played - epoch.begin] - slack[begin - epoch.begin]
            chance += float(params.window_slack) * math.sqrt(played - begin)
            regrets.append(own - losses[begin:played].sum(axis=0).min() - chance)
        return max(regrets) - float(params.margin)

    def later(round_: int, epoch: Epoch) -> Grown:
        played, local, goes_on, asked = round_ + 1, round_ + 1 - epoch.begin, 1.0, epoch.questions
        if played % check_every == 0:
            asked = (*asked, question(played, epoch) / 2)
            goes_on = _still_below(asked, budget) / _still_below(epoch.questions, budget)
            yield Epoch(played, epoch.plays[-1:], (), epoch.restarts + 1), 1 - goes_on
        chosen = {epoch.plays[-1]: 1.0}
        if not (local + 1) & local:
            totals = losses[epoch.begin + (local + 1) // 2 - 1 : played].sum(axis=0)
            chosen = noisy_max_law(np.float64(budget), -totals, noise="exponential")
        for expert, chance in chosen.items():
            yield epoch._replace(plays=(*epoch.plays, expert), questions=asked), goes_on * chance

    def shown(played: int, epoch: Epoch) -> tuple[Hashable, ...]:
        return played - epoch.begin, epoch.plays[-1], epoch.restarts

    first = {Epoch(0, (expert,), (), 0): 1 / num_experts for expert in range(num_experts)}
    return _law(len(losses), first, later, lambda _, epoch: epoch.plays[-1], shown)


class Watched(NamedTuple):
    """Of an expert that plays until its losses are too many: who, after how many selections, for how many rounds.

    Attributes:
        expert: who plays.
        switches: selections so far.
        played: rounds since the last one; -1 before a round at whose end one is made.
        questions: about these rounds, of which none was answered "above".
    """

    expert: int
    switches: int
    played: int
    questions: tuple[float, ...]


def svt_lazy_law(params: Any, data: Users, *, num_experts: int) -> Law:
    """Of an expert whose losses are compared with a threshold, and who is then drawn anew, with odds exp(-rate total).

    The noise of a threshold is integrated over.
    """
    losses, rate, budget = _losses(data), float(params.learning_rate), float(params.monitor_epsilon)

    def later(round_: int, now: Watched) -> Grown:
        if now.played < 0:
            for expert, chance in enumerate(softmax(-rate * losses[: round_ + 1].sum(axis=0)).tolist()):
                yield Watched(expert, now.switches + 1, 0, ()), chance
        elif now.switches >= int(params.max_switches):
            yield now._replace(played=now.played + 1), 1.0
        else:
            own = losses[round_ - now.played : round_ + 1, now.expert].sum()
            asked = (*now.questions, float(own) - float(params.threshold))
            goes_on = _still_below(asked, budget) / _still_below(now.questions, budget)
            yield now._replace(played=-1, questions=()), 1 - goes_on
            yield now._replace(played=now.played + 1, questions=asked), goes_on

    first = {Watched(expert, 0, 0, ()): 1 / num_experts for expert in range(num_experts)}
    return _law(len(losses), first, later, lambda _, now: now.expert, lambda _, now: now[:3], has_clock=False)


@functools.lru_cache(maxsize=4096)
def _still_below(questions: tuple[float, ...], epsilon: float) -> float:
    """The probability that AboveThreshold answers "above" to none, of sensitivity 1 and counted from the threshold."""
    if not questions:
        return 1.0
    return above_threshold_law(np.float64(epsilon), np.asarray(questions) + 0.5, split="even")[len(questions)]


def sampled_shares_law(
    params: Any, data: Users, *, num_experts: int, horizon: int, num_switches: int, mixing: str = "fixed_share"
) -> Law:
    """Of experts drawn anew in each round, by shares that absorb all losses before and stay away from 0."""
    losses, rate = _losses(data), float(params.learning_rate)
    passed, floor = num_switches / (horizon - 1), num_switches / (num_experts * horizon)
    shares = [np.full(num_experts, 1 / num_experts)]
    for each in losses:
        grown = softmax(np.log(shares[-1]) - rate * each)
        if mixing == "fixed_share":
            shares.append((1 - passed) * grown + passed / (num_experts - 1) * (1 - grown))
        else:
            scale = brentq(lambda scale, grown=grown: np.maximum(floor, scale * grown).sum() - 1, 0, 2, xtol=1e-15)
            shares.append(np.maximum(floor, scale * grown))

    def shown(_: int, expert: int) -> tuple[Hashable, ...]:
        return (tuple(float(other == expert) for other in range(num_experts)),)

    return _law(
        len(losses),
        dict(enumerate(shares[0].tolist())),
        lambda round_, _: enumerate(shares[round_ + 1].tolist()),
        lambda _, expert: expert,
        shown,
        has_clock=False,
    )


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

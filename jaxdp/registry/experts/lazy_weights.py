"""Registry entries of `lazy_weights`."""

import itertools
import math
from collections.abc import Hashable
from dataclasses import replace
from typing import Any, NamedTuple

from jaxdp import experts
from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.experts import classes
from jaxdp.registry.experts._distributions import Grown, distribution_of_rounds, losses_of
from jaxdp.registry.experts._worlds import (
    a_loss_of_a_long_run,
    expert_entry,
    loss_moves,
    punishing,
    shifting,
    the_first_loss_decides,
)
from jaxdp.registry.second import Second

ORDER = 320  # position of the entries in lists

Sequence = tuple[int, ...]


class Played(NamedTuple):
    """The state of a run: the current sequence of experts, and the number of resamples."""

    sequence: Sequence
    resamples: int


def lazy_weights_distribution(
    params: Any, data: UserData, *, num_experts: int, horizon: int, sequences: Any = None
) -> OutputDistribution:
    """Returns the distribution of the plays and of `public`.

    After each batch except the last, the sequence is kept with probability (1 - p) * exp(-rate * loss), where p is
    `fake_switch_prob` and loss is the sequence's loss in the batch. If the sequence is not kept, a new sequence is
    drawn with probability proportional to its prior * exp(-rate * its total loss so far). After `budget` resamples, the
    sequence is always kept. All sequences of the class are enumerated; for None, the class is `static()`.
    """
    rate, fake = float(params.learning_rate), float(params.fake_switch_prob)
    batch, budget, losses = int(params.batch), int(params.budget), losses_of(data)
    prior = _prior(sequences, num_experts, -(-horizon // batch))

    def later(round_: int, played: Played) -> Grown:
        step, ends = divmod(round_ + 1, batch)
        if ends or round_ + 1 >= horizon:
            yield played, 1.0
            return
        keep_prob = 1.0
        if played.resamples < budget:
            loss = losses[round_ + 1 - batch : round_ + 1, played.sequence[step - 1]].sum()
            keep_prob = (1 - fake) * math.exp(-rate * loss)
        yield played, keep_prob
        totals = losses[: round_ + 1].reshape(step, batch, num_experts).sum(axis=1)
        weights = {path: p * math.exp(-rate * sum(totals[range(step), path[:step]])) for path, p in prior.items()}
        for path, weight in weights.items():
            yield Played(path, played.resamples + 1), (1 - keep_prob) * weight / math.fsum(weights.values())

    def public_content(round_: int, played: Played) -> tuple[Hashable, ...]:
        """Returns the expert, the number of switches (0 unless the class is `switching`), and the resamples so far."""
        step = min(round_, horizon - 1) // batch
        switches = _switches(played.sequence[: step + 1]) if hasattr(sequences, "num_switches") else 0
        return played.sequence[step], switches, played.resamples

    def expert(round_: int, played: Played) -> int:
        return played.sequence[round_ // batch]

    return distribution_of_rounds(
        len(losses), {Played(path, 0): p for path, p in prior.items()}, later, expert, public_content
    )


def _prior(sequences: Any, num_experts: int, steps: int) -> dict[Sequence, float]:
    """Returns the prior: uniform over sequences with at most S switches, or from the class's switch rate."""
    listed = itertools.product(range(num_experts), repeat=steps)
    if hasattr(sequences, "switch_rate"):
        rate = sequences.switch_rate
        if rate is None:
            raise ValueError(f"sequences must have one switch_rate for an exact prior, got {sequences!r}")
        to_each = rate / (num_experts - 1)
        return {e: to_each ** _switches(e) * (1 - rate) ** (steps - 1 - _switches(e)) / num_experts for e in listed}
    chosen = [e for e in listed if _switches(e) <= getattr(sequences, "num_switches", 0)]
    return dict.fromkeys(chosen, 1 / len(chosen))


def _switches(sequence: Sequence) -> int:
    return sum(one != other for one, other in itertools.pairwise(sequence))


def losses_of_a_batch(num_experts: int, batch: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of one batch, who differ in round one.

    In later rounds all experts except the first have losses.
    """
    return loss_moves(num_experts, 0, *["others"] * (batch - 1))


def losses_of_batches(num_experts: int, horizon: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of `horizon` rounds, who differ in round one.

    In later rounds all experts except the first have losses.
    """
    return loss_moves(num_experts, 0, *["others"] * (horizon - 1))


LAZY = "Asi, Feldman, Koren & Talwar (2023), private shrinking dartboard, with its own accounting"
# Each of the seven decisions would draw a sequence with probability >= 0.3; the budget permits only one draw.
A_BUDGET_OF_ONE = Second({"horizon": 8}, {"fake_switch_prob": 0.3, "budget": 1}, a_loss_of_a_long_run)


# With so few rounds, the tuned `fake_switch_prob` is 1: every decision draws a new sequence.
LAZY_WEIGHTS = expert_entry(
    summary="keeps an expert drawn by exponential weights as long as their distribution permits",
    source=LAZY,
    reached=0.8,  # the true fraction is 0.895: decisions are fixed here, but the claim includes a decision's cost
    factory=experts.lazy_weights,
    sizes={"num_experts": 2, "horizon": 4},
    values={"epsilon": 4.0, "delta": 1e-3},
    environment=punishing,
    neighbours=the_first_loss_decides,
    draws_in_update=True,
    may_claim_less=True,
    distribution=lazy_weights_distribution,
    second=A_BUDGET_OF_ONE,
)
ENTRIES = {
    "lazy_weights": LAZY_WEIGHTS,
    # Two batches of five rounds, and at most one resample. The losses of the first batch make one expert a rare draw.
    "lazy_weights_switching": replace(
        LAZY_WEIGHTS,
        summary="keeps a sequence of experts with at most one switch, drawn by exponential weights; pure accounting",
        source=f"{LAZY}; sequences of Asi, Raman & Saha (2025), Theorem 4.1",
        variant={"sequences": classes.switching(num_switches=1), "accounting": "pure", "rounds_per_step": 2},
        sizes={"num_experts": 2, "horizon": 10},
        values={"epsilon": 2.5, "batch": 5},
        environment=shifting,
        neighbours=losses_of_a_batch,
        second=Second({"horizon": 15}, {"batch": 3, "fake_switch_prob": 0.5, "budget": 1}, losses_of_batches),
        horizon=10,
        reached=None,
    ),
    "lazy_weights_markov": replace(
        LAZY_WEIGHTS,
        summary="keeps a sequence of experts that switches at a rate, drawn by exponential weights",
        source=f"{LAZY}; sequences of Herbster & Warmuth (1998), fixed share",
        reached=0.5,  # the true fraction is 0.590; a loss before a switch says little about later plays
        variant={"sequences": classes.markov(switch_rate=0.05)},
        environment=shifting,
        # Each of the four decisions would draw a sequence with probability >= 0.5; the budget permits only one draw.
        second=Second(
            {"horizon": 5},
            {"batch": 1, "fake_switch_prob": 0.5, "budget": 1, "learning_rate": 0.8},
            a_loss_of_a_long_run,
        ),
    ),
}
USES = {  # shown on pages of the site
    "lazy_weights": {
        "use": (
            "Use it with a curator against oblivious losses, for the best expert or for sequences that switch: exact "
            "weights over the class, few draws."
        ),
        "not": (
            "Against an adversary that reacts to plays its claim for switching classes costs more. Weights over "
            "switching classes are floats, and the claim states their rounding."
        ),
    },
}

"""The entry of `svt_restarts`."""

import math
from collections.abc import Hashable
from typing import Any, NamedTuple

import numpy as np

from jaxdp import experts
from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.distributions import noisy_max_distribution
from jaxdp.registry.experts._distributions import Grown, all_below, distribution_of_rounds, losses_of
from jaxdp.registry.experts._worlds import TRACKING, expert_entry, loss_moves, shifting
from jaxdp.registry.second import Second

ORDER = 350  # position of the entries in lists


class Epoch(NamedTuple):
    """The state of restarted limited updates that determines their future distribution."""

    begin: int  # rounds before the epoch
    plays: tuple[int, ...]  # experts of the epoch's rounds, and of the next round
    queries: tuple[float, ...]  # halved queries of the epoch so far; all were answered "below"
    restarts: int  # earlier epochs


def svt_restarts_distribution(
    params: Any, data: UserData, *, num_experts: int, check_every: int = 1
) -> OutputDistribution:
    """Returns the distribution of the plays and of `public`.

    AboveThreshold with epsilon / 2 restarts limited updates with epsilon / 2. Every `check_every` rounds, it compares a
    query of sensitivity 2 with the threshold `margin`. The query is the largest amount by which the regret in a window
    of this epoch exceeds the window's slack. Each window ends in this round. It starts with the epoch, or, for some k
    >= 0, after one of the last two multiples of 2^k * check_every before this round. If the answer is "above", the next
    round starts a new epoch, and plays the same expert as this round.
    """
    losses, budget = losses_of(data), float(params.epsilon) / 2
    slack = np.cumsum([0.0, *(float(params.block_slack[n.bit_length() - 1]) for n in range(1, len(losses) + 1))])

    def query(played: int, epoch: Epoch) -> float:
        checks, first, regrets = played // check_every, epoch.begin // check_every, []
        multiples = {2**k * ((checks - 1) // 2**k - one) for k in range(checks.bit_length() + 1) for one in (0, 1)}
        for begin in (check_every * start for start in multiples | {first} if start >= first):
            loss = losses[range(begin, played), epoch.plays[begin - epoch.begin :]].sum()
            chance = slack[played - epoch.begin] - slack[begin - epoch.begin]
            chance += float(params.window_slack) * math.sqrt(played - begin)
            regrets.append(loss - losses[begin:played].sum(axis=0).min() - chance)
        return max(regrets) - float(params.margin)

    def later(round_: int, epoch: Epoch) -> Grown:
        played, local, goes_on, queries = round_ + 1, round_ + 1 - epoch.begin, 1.0, epoch.queries
        if played % check_every == 0:
            queries = (*queries, query(played, epoch) / 2)
            goes_on = all_below(queries, budget) / all_below(epoch.queries, budget)
            yield Epoch(played, epoch.plays[-1:], (), epoch.restarts + 1), 1 - goes_on
        chosen = {epoch.plays[-1]: 1.0}
        if not (local + 1) & local:
            totals = losses[epoch.begin + (local + 1) // 2 - 1 : played].sum(axis=0)
            chosen = noisy_max_distribution(np.float64(budget), -totals, noise="exponential")
        for expert, chance in chosen.items():
            yield epoch._replace(plays=(*epoch.plays, expert), queries=queries), goes_on * chance

    def public_content(played: int, epoch: Epoch) -> tuple[Hashable, ...]:
        return played - epoch.begin, epoch.plays[-1], epoch.restarts

    first = {Epoch(0, (expert,), (), 0): 1 / num_experts for expert in range(num_experts)}
    return distribution_of_rounds(len(losses), first, later, lambda _, epoch: epoch.plays[-1], public_content)


def a_query_and_a_block(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of three rounds who differ in round two.

    Round one has no losses. In round two only the first expert has a loss (first run), or only the others have a loss
    (second run). In round three only the first expert has a loss.
    """
    return loss_moves(num_experts, 1, "none", "first")


def an_epoch_and_more(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of twelve rounds, who differ in round two; rounds may follow a restart.

    In round two only the first expert has a loss (first run), or only the others have a loss (second run). In rounds 3
    and 7 to 9 only the first expert has a loss; other rounds have no losses.
    """
    return loss_moves(num_experts, 1, "none", "first", *["none"] * 3, *["first"] * 3, *["none"] * 3)


ENTRIES = {
    # The margin is so low that epochs end after a few rounds. With a query every three rounds, each window contains
    # all rounds since the last query, so that a user may change a query by as much as the declared sensitivity.
    "svt_restarts": expert_entry(
        summary="restarts limited updates when the sparse vector technique finds that losses have shifted",
        source=TRACKING.format("Algorithm 2"),
        reached=0.5,  # the true fraction is 0.576, and at most 7/8 at any sizes: see the factory's docstring
        factory=experts.svt_restarts,
        variant={"check_every": 3},
        sizes={"num_experts": 2, "horizon": 12},
        values={"epsilon": 1.0, "failure_prob": 0.5, "margin": -6.0},
        environment=shifting,
        neighbours=a_query_and_a_block,
        draws_in_update=True,
        distribution=svt_restarts_distribution,
        second=Second(neighbours=an_epoch_and_more),
    ),
}
USES = {  # shown on pages of the site
    "svt_restarts": {
        "use": "Use it with a curator when the best expert changes a few times at unknown rounds.",
        "not": "It pays for questions in every round; if nothing shifts, `limited_updates` is better and much faster.",
    },
}

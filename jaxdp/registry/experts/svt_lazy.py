"""Registry entries of `svt_lazy`."""

from dataclasses import replace
from typing import Any, NamedTuple

from scipy.special import softmax

from jaxdp import experts
from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.experts._distributions import Grown, all_below, distribution_of_rounds, losses_of
from jaxdp.registry.experts._worlds import expert_entry, loss_moves, shifting
from jaxdp.registry.second import Second

ORDER = 360  # position of the entries in lists


class Watched(NamedTuple):
    """The state of a learner that plays an expert until this expert's losses are too large."""

    expert: int
    switches: int  # selections so far
    played: int  # rounds since the last selection; -1 before a round that ends with a selection
    queries: tuple[float, ...]  # since the last selection, if all were answered "below"; else ()


def svt_lazy_distribution(params: Any, data: UserData, *, num_experts: int) -> OutputDistribution:
    """Returns the distribution of the plays and of `public`.

    AboveThreshold compares the played expert's losses since the last draw with a threshold. One round after
    AboveThreshold answers "above", an expert is drawn with probability proportional to exp(-rate * total), where total
    is the expert's loss in all rounds so far. There are at most `max_switches` such draws; the first expert is uniform.
    """
    losses, rate, budget = losses_of(data), float(params.learning_rate), float(params.monitor_epsilon)

    def later(round_: int, state: Watched) -> Grown:
        if state.played < 0:
            for expert, chance in enumerate(softmax(-rate * losses[: round_ + 1].sum(axis=0)).tolist()):
                yield Watched(expert, state.switches + 1, 0, ()), chance
        elif state.switches >= int(params.max_switches):
            yield state._replace(played=state.played + 1), 1.0
        else:
            loss = losses[round_ - state.played : round_ + 1, state.expert].sum()
            queries = (*state.queries, float(loss) - float(params.threshold))
            goes_on = all_below(queries, budget) / all_below(state.queries, budget)
            yield state._replace(played=-1, queries=()), 1 - goes_on
            yield state._replace(played=state.played + 1, queries=queries), goes_on

    first = {Watched(expert, 0, 0, ()): 1 / num_experts for expert in range(num_experts)}
    return distribution_of_rounds(len(losses), first, later, lambda _, w: w.expert, lambda _, w: w[:3], has_clock=False)


def replaced_late(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of two runs who differ in round one.

    Later, all experts except the first have losses (three rounds), then no expert (three rounds), then all experts
    (four rounds). If an expert other than the first survives the rounds without losses, the noise of the threshold is
    revealed. If this expert is later replaced, but not by the first one, the selection reveals as much as possible.
    """
    return loss_moves(num_experts, 0, *["others"] * 3, *["none"] * 3, *["all"] * 4)


def replaced_and_drawn_again(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of two runs who differ in round one.

    This round affects whether the first expert is replaced, and by which expert. All experts have losses in round two,
    and only the first expert in rounds three and four.
    """
    return loss_moves(num_experts, 0, "all", "first", "first")


def replaced_until_the_cap(num_experts: int, horizon: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of `horizon` rounds who differ in round one.

    After round one, all experts except the first have losses for three rounds. Then no expert has losses for three
    rounds, and from then on all experts have losses. The last rounds are beyond the cap on selections.
    """
    return loss_moves(num_experts, 0, *["others"] * 3, *["none"] * 3, *["all"] * (horizon - 7))


def drawn_until_the_cap(num_experts: int, horizon: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of `horizon` rounds who differ in round one.

    All experts have losses in round two, in round five and in all later rounds; only the first expert has losses in
    rounds three and four.
    """
    return loss_moves(num_experts, 0, "all", "first", "first", *["all"] * (horizon - 4))


LAZY_SVT = "structure after Asi, Feldman, Koren & Talwar (2023), the realizable regime, with its own accounting"
SVT_LAZY = expert_entry(
    summary="draws a new expert when the sparse vector technique finds that the current expert's loss is large",
    source=LAZY_SVT,
    reached=0.8,  # the true fraction is 0.971; the most revealing outcome occurs in fewer than 0.1% of runs
    factory=experts.svt_lazy,
    sizes={"num_experts": 2, "horizon": 11},
    values={"epsilon": 4.0, "max_switches": 1, "threshold": 3.0},
    environment=shifting,
    neighbours=replaced_late,
    draws_in_update=True,
    distribution=svt_lazy_distribution,
    second=Second({"horizon": 24}, {"max_switches": 2}, replaced_until_the_cap),
)
ENTRIES = {
    "svt_lazy": SVT_LAZY,
    "svt_lazy_zcdp": replace(
        SVT_LAZY,
        summary="draws a new expert when the sparse vector technique finds too many losses, with zCDP accounting",
        reached=0.4,  # the true fraction is 0.503; few rounds say little about the threshold's noise
        variant={"accounting": "zcdp"},
        sizes={"num_experts": 2, "horizon": 8},
        values={"epsilon": 2.0, "delta": 1e-3, "max_switches": 1, "threshold": 0.0},
        neighbours=replaced_and_drawn_again,
        second=Second({"horizon": 16}, {"max_switches": 2}, drawn_until_the_cap),
        horizon=8,
    ),
}
USES = {  # shown on pages of the site
    "svt_lazy": {
        "use": "Use it when one expert has almost no loss: it changes its expert only after losses add up.",
        "not": "If every expert has losses all the time, the budget of draws is used up early.",
    },
}

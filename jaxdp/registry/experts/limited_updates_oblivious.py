"""Registry entries of `limited_updates_oblivious`."""

from dataclasses import replace
from typing import Any

from scipy.special import softmax

from jaxdp import experts
from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.experts._distributions import Grown, distribution_of_rounds, losses_of
from jaxdp.registry.experts._worlds import a_loss_of_a_long_run, expert_entry, loss_moves, shifting
from jaxdp.registry.second import Second

ORDER = 340  # position of the entries in lists


def limited_updates_oblivious_distribution(
    params: Any, data: UserData, *, num_experts: int, horizon: int
) -> OutputDistribution:
    """Returns the distribution of the plays and of `public`.

    After each batch except the last, an expert is drawn with probability proportional to exp(-rate * total), where
    total is the expert's loss in all rounds so far. The first expert is uniform.
    """
    losses, rate, batch = losses_of(data), float(params.learning_rate), int(params.batch)

    def later(round_: int, expert: int) -> Grown:
        played = round_ + 1
        if played % batch or played >= horizon:
            return iter([(expert, 1.0)])
        return iter(enumerate(softmax(-rate * losses[:played].sum(axis=0)).tolist()))

    first = dict.fromkeys(range(num_experts), 1 / num_experts)
    return distribution_of_rounds(len(losses), first, later, lambda _, expert: expert, lambda _, expert: (expert,))


def the_first_batch_decides(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of four rounds, who differ in the first round; other rounds have no losses."""
    return loss_moves(num_experts, 0, "none", "none", "none")


def the_first_of_a_batch_decides(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of four rounds, who differ in the first round.

    In round two only the first expert has a loss, so that this expert is rarely drawn. Later rounds have no losses.
    """
    return loss_moves(num_experts, 0, "first", "none", "none")


def the_first_of_batches_decides(num_experts: int, horizon: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of `horizon` rounds, who differ in the first round.

    In round two only the first expert has a loss. Later rounds have no losses.
    """
    return loss_moves(num_experts, 0, "first", *["none"] * (horizon - 2))


BATCHES = "McSherry & Talwar (2007), the exponential mechanism, in batches of rounds"
# The first expert has losses in the first batch, so both selections rarely select it.
LIMITED_UPDATES_OBLIVIOUS = expert_entry(
    summary="draws an expert for each batch of rounds by the exponential mechanism on all earlier losses",
    source=BATCHES,
    factory=experts.limited_updates_oblivious,
    sizes={"num_experts": 10, "horizon": 5},
    values={"epsilon": 4.0, "batch": 2},
    environment=shifting,
    neighbours=the_first_of_a_batch_decides,
    draws_in_update=True,
    distribution=limited_updates_oblivious_distribution,
    second=Second({"horizon": 8}, {"batch": 3}, the_first_of_batches_decides),
)
ENTRIES = {
    "limited_updates_oblivious": LIMITED_UPDATES_OBLIVIOUS,
    "limited_updates_oblivious_zcdp": replace(
        LIMITED_UPDATES_OBLIVIOUS,
        summary="draws an expert for each batch of rounds by the exponential mechanism, with zCDP accounting",
        variant={"accounting": "zcdp"},
        sizes={"num_experts": 3, "horizon": 5},
        values={"epsilon": 2.0, "delta": 1e-3, "batch": 2},
        neighbours=the_first_batch_decides,
        second=Second({"horizon": 8}, {"batch": 3}, a_loss_of_a_long_run),
    ),
}
USES = {  # shown on pages of the site
    "limited_updates_oblivious": {
        "use": (
            "Use it with a curator against oblivious losses for the best fixed expert, when a simple mechanism with "
            "a one-line proof is wanted."
        ),
        "not": "It cannot track shifts: use `lazy_weights` over switching classes.",
    },
}

"""Registry entries of `limited_updates`."""

from dataclasses import replace
from typing import Any

import numpy as np

from jaxdp import experts
from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.distributions import noisy_max_distribution
from jaxdp.registry.experts._distributions import Grown, distribution_of_rounds, losses_of
from jaxdp.registry.experts._worlds import TRACKING, adaptive, draw_losses, expert_entry, loss_moves, stochastic
from jaxdp.registry.second import Second

ORDER = 330  # position of the entries in lists


def limited_updates_distribution(
    params: Any, data: UserData, *, num_experts: int, losses: str = "bounded"
) -> OutputDistribution:
    """Returns the distribution of the plays and of `public`.

    In rounds 2^k to 2^(k+1) - 1, counted from 1, the learner plays the expert with the smallest noisy total loss in
    rounds 2^(k-1) to 2^k - 1. In round 1 it plays a uniform expert.
    """
    seen, epsilon = losses_of(data, binary=losses == "binary"), float(params.epsilon)

    def later(round_: int, expert: int) -> Grown:
        following = round_ + 2  # counted from 1
        if following & (following - 1):
            return iter([(expert, 1.0)])
        totals = seen[following // 2 - 1 : following - 1].sum(axis=0)
        return iter(noisy_max_distribution(np.float64(epsilon), -totals, noise="exponential").items())

    first = dict.fromkeys(range(num_experts), 1 / num_experts)
    return distribution_of_rounds(len(seen), first, later, lambda _, expert: expert, lambda _, expert: (expert,))


def all_in_one_block(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of three rounds, who differ in round two; rounds two and three are one block.

    Only the first expert has losses, except in round two of the second run, in which only the other experts have
    losses.
    """
    return loss_moves(num_experts, 1, "first", "first")


def four_blocks(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of twelve rounds, who differ in round two.

    The blocks are the rounds 1, 2-3, 4-7 and 8-12, as the last block is cut off. In rounds 1 to 3 only the first expert
    has a loss, except in round two of the second run, in which only the others have a loss. Later rounds have no
    losses.
    """
    return loss_moves(num_experts, 1, "first", "first", *["none"] * 9)


LIMITED_UPDATES = expert_entry(
    summary="plays in each block of rounds the noisily selected best expert of the previous block (half as long)",
    source=TRACKING.format("Algorithm 1"),
    factory=experts.limited_updates,
    sizes={"num_experts": 3},
    values={"epsilon": 1.0},
    environment=adaptive,
    horizon=20,
    neighbours=all_in_one_block,
    draws_in_update=True,
    distribution=limited_updates_distribution,
    second=Second(neighbours=four_blocks),
)
ENTRIES = {
    "limited_updates": LIMITED_UPDATES,
    # Users have no NaN: in the engine "counts", one NaN would make a total NaN, and the total would count as 0.
    "limited_updates_binary": replace(
        LIMITED_UPDATES,
        summary="plays in each block of rounds the best expert of the previous block, for losses of 0 or 1",
        variant={"losses": "binary"},
        values={"epsilon": 0.5},
        environment=stochastic,
        horizon=12,
        draw_user=draw_losses,
    ),
}
USES = {  # shown on pages of the site
    "limited_updates": {
        "use": (
            "Use it with a curator when the horizon is unknown and the best expert is stochastic: one release in "
            "each doubling of the rounds."
        ),
        "not": "It forgets all earlier losses at each doubling; if losses shift, use `svt_restarts` or `lazy_weights`.",
    },
}

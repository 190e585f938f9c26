"""Entries of `ucb_central`."""

from dataclasses import replace

import numpy as np

from jaxdp import bandits
from jaxdp.audit import UserData
from jaxdp.registry.bandits._rewards import bandit_entry, bernoulli, draw_binary, one_reward_moves
from jaxdp.registry.second import Second

ORDER = 200  # position of the entries in lists


def _first_reward_moves(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs: the first arm pays 0 (in the second run not in round one), other arms pay 1."""
    return one_reward_moves(0, 1, num_arms, 2 * num_arms, np.int32)


def _the_first_arm_stays(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs in which the first arm plays several blocks.

    Only the first arm pays, in one run always and in the other run except in round one.
    """
    always = np.zeros((18, num_arms), np.int32)
    always[:, 0] = 1
    once = always.copy()
    once[0, 0] = 0
    return UserData(always), UserData(once)


UCB_CENTRAL = bandit_entry(
    summary="plays the arm with the largest upper bound, from totals of doubling blocks with Laplace noise",
    source="Auer, Cesa-Bianchi & Fischer (2002), UCB1; Azize & Basu (2022)",
    factory=bandits.ucb_central,
    draws_in_update=True,
    sizes={"num_arms": 3},
    values={"epsilon": 1.0},
    environment=bernoulli,
    horizon=30,
    neighbours=_first_reward_moves,
    draw_user=draw_binary,
    second=Second(neighbours=_the_first_arm_stays),
)
ENTRIES = {
    "ucb_central": UCB_CENTRAL,
    "ucb_central_tree": replace(
        UCB_CENTRAL,
        summary="plays the arm with the largest upper bound, from continual counters of rewards, one per arm",
        source="Auer, Cesa-Bianchi & Fischer (2002), UCB1; Mishra & Thakurta (2015)",
        variant={"release": "tree"},
        sizes={"num_arms": 2, "horizon": 10},
        second=Second({"horizon": 24}, neighbours=_the_first_arm_stays),
        horizon=10,
    ),
}
USES = {  # for pages of the site
    "ucb_central": {
        "use": "Use it with a curator and fixed means; it is the first choice for regret at ε around 1.",
        "not": (
            "At ε of a few hundredths `successive_elimination_central` may have a lower regret. Without a curator "
            'use `ucb` or `thompson`. The variant `release="tree"` is there for comparison: at the same ε its regret '
            "is larger, and it is slower."
        ),
    },
}

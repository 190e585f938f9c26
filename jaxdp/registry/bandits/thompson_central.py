"""The entry of `thompson_central`."""

from dataclasses import replace

import numpy as np

from jaxdp import bandits
from jaxdp.audit import UserData
from jaxdp.registry.bandits._rewards import (
    bandit_entry,
    bernoulli,
    draw_any,
    draw_binary,
    every_reward_leaves,
    every_reward_moves,
    gaussian,
)
from jaxdp.registry.draws import change_answers
from jaxdp.registry.second import Second

ORDER = 195  # position of the entries in lists


def _the_first_reward_moves(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs: rewards are 0, but in round one of the second run all arms' rewards are 1."""
    return change_answers(np.zeros((12, num_arms), np.int32), 0, 1)


BINARY = bandit_entry(
    title="Thompson sampling, central",
    summary="plays the arm that is best in a draw from its posterior, given totals of blocks with geometric noise",
    source="Hu & Hegde (2022); Agrawal & Goyal (2012), Algorithm 1",
    factory=bandits.thompson_central,
    sizes={"num_arms": 2},
    values={"epsilon": 1.0, "growth": 1.0, "noise_weight": 0.5},
    environment=bernoulli,
    horizon=12,
    neighbours=every_reward_moves,
    draw_user=draw_binary,
    second=Second(neighbours=_the_first_reward_moves),
)
ENTRIES = {
    "thompson_central": BINARY,
    "thompson_central_bounded": replace(
        BINARY,
        title="Thompson sampling, central, bounded",
        summary="plays the arm that is best in a draw from its posterior, given totals of blocks with Laplace noise",
        source="Hu & Hegde (2022); Agrawal & Goyal (2012), Algorithms 1 and 2",
        variant={"rewards": "bounded"},
        values={**BINARY.values, "reward_low": -1.0, "reward_high": 2.0},
        environment=gaussian,
        neighbours=every_reward_leaves,
        draw_user=draw_any,
        second=None,
    ),
}
USES = {  # shown on pages of the site
    "thompson_central": {
        "use": "Use it with a curator, fixed means and binary rewards, when the regret itself counts.",
        "not": (
            "The posterior is a heuristic, so no bound is proved; `ucb_central` has one. At small ε a few runs may "
            "leave the best arm for long. At ε of 3 and above trust buys little: `thompson` on local reports has about "
            "the same regret."
        ),
    },
}

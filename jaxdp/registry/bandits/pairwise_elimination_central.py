"""The entry of `pairwise_elimination_central`."""

import numpy as np

from jaxdp import bandits
from jaxdp.audit import UserData
from jaxdp.registry.bandits._best_arm import bernoulli
from jaxdp.registry.bandits._rewards import bandit_entry, draw_binary, one_reward_moves
from jaxdp.registry.second import Second

ORDER = 203  # position of the entries in lists


def _a_first_epoch(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of the first epoch, in which each arm is played once.

    The first arm pays 0 (in the second run not in round one), other arms pay 1.
    """
    return one_reward_moves(0, 1, num_arms, num_arms, np.int32)


def _three_epochs(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs who differ in round one; the release of the first epoch decides later epochs' bets.

    The first arm pays 0 (in the second run not in round one), other arms pay 1.
    """
    return one_reward_moves(0, 1, num_arms, 6 * num_arms, np.int32)


ENTRIES = {
    "pairwise_elimination_central": bandit_entry(
        summary="finds the best arm by bets on pairs of arms, from totals that get Laplace noise once per epoch",
        source="Turner, Ly & Grünwald (2024), arXiv 2106.02693, for the bets; the noise and the union bound are ours",
        factory=bandits.pairwise_elimination_central,
        sizes={"num_arms": 3},
        # so that few rounds may drop an arm: epochs end after 1, 2, 4, 8, ... turns
        values={"epsilon": 1.0, "failure_prob": 0.9, "log_odds_ratio": 1.0, "first_look": 2, "growth": 1.0},
        environment=bernoulli,
        horizon=40,
        neighbours=_a_first_epoch,
        draw_user=draw_binary,
        second=Second(neighbours=_three_epochs),
    )
}

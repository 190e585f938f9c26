"""The entry of `successive_elimination_central`."""

import numpy as np

from jaxdp import bandits
from jaxdp.audit import UserData
from jaxdp.registry.bandits._rewards import bandit_entry, bernoulli, draw_binary, one_reward_moves
from jaxdp.registry.second import Second

ORDER = 190  # position of the entries in lists


def _an_epoch_moves(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of the first epoch, in which each arm is played four times.

    The first arm pays 0 (in the second run not in round one), other arms pay 1.
    """
    return one_reward_moves(0, 1, num_arms, 4 * num_arms, np.int32)


def _three_epochs(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of 8 num_arms rounds; the first epoch ends after half of them.

    The first arm pays 0 (in the second run not in round one), other arms pay 1.
    """
    return one_reward_moves(0, 1, num_arms, 8 * num_arms, np.int32)


ENTRIES = {
    "successive_elimination_central": bandit_entry(
        summary="plays arms in epochs, after which arms with a low mean, with Laplace noise, are dropped",
        source="Sajed & Sheffet (2019), DP successive elimination",
        factory=bandits.successive_elimination_central,
        # Among three arms, only an arm's own noise can keep it if it is far behind. Between two arms, the noise of the
        # other arm can keep it, too.
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.016},
        environment=bernoulli,
        horizon=40,
        neighbours=_an_epoch_moves,
        draw_user=draw_binary,
        second=Second(neighbours=_three_epochs),
    ),
}

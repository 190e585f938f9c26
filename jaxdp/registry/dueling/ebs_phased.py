"""The entry of `ebs_phased`."""

import numpy as np

from jaxdp import dueling
from jaxdp.audit import UserData
from jaxdp.registry.draws import change_answers
from jaxdp.registry.dueling._duels import SAHA_ASI, duel_entry, ranked_arms
from jaxdp.registry.second import Second

ORDER = 410  # position of the entries in lists


def _one_duel_moves(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of num_arms^2 rounds, in which the left arm wins unless it is the first arm.

    The first arm wins no duel on the left, but it wins in round one of the second run.
    """
    never = np.ones((num_arms**2, num_arms, num_arms), np.int32)
    never[:, 0] = 0
    return change_answers(never, (0, 0), 1)


def _two_phases(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of 3 num_arms^2 rounds; the last two thirds come after the first phase.

    The left arm wins unless it is the first arm; in the second run the first arm also wins in round one.
    """
    first, second = (UserData(np.tile(users.answers, (3, 1, 1))) for users in _one_duel_moves(num_arms))
    second.answers[num_arms**2 :, 0] = 0
    return first, second


ENTRIES = {
    "ebs_phased": duel_entry(
        title="EBS, phases",
        summary="duels in phases, and after each drops arms whose fraction of wins with Laplace noise is low",
        source=f"{SAHA_ASI}, in the phased form that repairs its analysis",
        factory=dueling.ebs_phased,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.003},
        environment=ranked_arms,
        horizon=50,
        neighbours=_one_duel_moves,
        second=Second(neighbours=_two_phases),
    ),
}
USES = {  # shown on pages of the site
    "ebs_phased": {
        "use": (
            "Use it for duels with a curator when the winner is the arm of largest Borda score: a few releases, pure "
            "privacy."
        ),
        "not": "If a Condorcet winner is wanted, or no curator can be trusted, use `rucb`.",
    },
}

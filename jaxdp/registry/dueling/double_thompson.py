"""Registry entries of `double_thompson`."""

from dataclasses import replace
from typing import Any

import numpy as np

from jaxdp import dueling
from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.draws import change_answers
from jaxdp.registry.dueling._distributions import first_duel, report_distribution
from jaxdp.registry.dueling._duels import a_user_changes, duel_entry, every_duel_moves, one_good_arm
from jaxdp.registry.second import Second

ORDER = 460  # position of the entries in lists


def _the_first_duel(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs that differ in the first round.

    If an arm duels with itself in this round, the first user's answer is never released. Otherwise this round is a
    block.
    """
    return a_user_changes(num_arms, 6, 0)


def _the_left_arm_loses(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs: the left arm loses all duels, but wins the first duel of the second run."""
    return change_answers(np.zeros((6, num_arms, num_arms), np.int32), 0, 1)


def double_thompson_distribution(params: Any, data: UserData, *, num_arms: int) -> OutputDistribution:
    """Returns the distribution of the report on the first duel.

    The left arm is uniform. The right arm has the largest sampled probability of beating the left arm; samples are
    uniform in [0, 1], and 1/2 for the left arm itself.
    """
    itself = 0.5 ** (num_arms - 1)  # probability that the samples of all other arms are below 1/2
    chances = np.full((num_arms, num_arms), (1 - itself) / (num_arms - 1) / num_arms)
    np.fill_diagonal(chances, itself / num_arms)
    return report_distribution(dueling.double_thompson(num_arms=num_arms), params, data, first_duel(chances))


DOUBLE_THOMPSON = duel_entry(
    summary="draws both arms of a duel from posteriors of randomized outcomes",
    source="Wu & Liu (2016), Algorithm 1 (D-TS), by randomized responses of Warner (1965)",
    factory=dueling.double_thompson,
    sizes={"num_arms": 3},
    values={"epsilon": 1.0},
    environment=one_good_arm,
    horizon=6,
    neighbours=every_duel_moves,
    randomizes=True,
    distribution=double_thompson_distribution,
)
ENTRIES = {
    "double_thompson": DOUBLE_THOMPSON,
    "double_thompson_blocks": replace(
        DOUBLE_THOMPSON,
        summary="draws both arms of a duel from posteriors of wins with Laplace noise, in doubling blocks",
        source="Wu & Liu (2016), Algorithm 1 (D-TS), by doubling blocks of Azize & Basu (2022)",
        variant={"release": "blocks"},
        sizes={"num_arms": 2},
        values={"epsilon": 0.5},
        horizon=8,
        neighbours=_the_first_duel,
        randomizes=False,
        distribution=None,
        second=Second(neighbours=_the_left_arm_loses),
    ),
}
USES = {  # shown on pages of the site
    "double_thompson": {
        "use": "Use it for duels with local reports as the alternative to `rucb`: simulate both.",
        "not": "The posterior is a heuristic under privacy; no regret bound is known.",
    },
}

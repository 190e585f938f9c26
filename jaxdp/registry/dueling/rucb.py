"""Entries of `rucb`."""

from dataclasses import replace
from typing import Any

import numpy as np

from jaxdp import dueling
from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.dueling._distributions import first_duel, report_distribution
from jaxdp.registry.dueling._duels import PRIVATIZED, a_user_changes, duel_entry, every_duel_moves, one_good_arm

ORDER = 440  # in lists


def _a_later_duel(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users who differ in the third: for two arms, the first of the block of rounds three and four.

    The next block ends in round 8. It uses the wins after round 4 again, if the count is not restarted from zero.
    """
    return a_user_changes(num_arms, 8, 2)


def rucb_distribution(params: Any, data: UserData, *, num_arms: int) -> OutputDistribution:
    """Returns the distribution of the report on the first duel: any arm may be the champion, any other its rival."""
    chances = np.full((num_arms, num_arms), 1 / (num_arms - 1) / num_arms)
    np.fill_diagonal(chances, 0.0)
    return report_distribution(dueling.rucb(num_arms=num_arms), params, data, first_duel(chances))


RUCB = duel_entry(
    summary="duels the likely champion with its strongest rival, by upper bounds from randomized outcomes",
    source=f"Zoghi, Whiteson, Munos & de Rijke (2014), Algorithm 1; {PRIVATIZED}",
    factory=dueling.rucb,
    sizes={"num_arms": 3},
    values={"epsilon": 1.0},
    environment=one_good_arm,
    horizon=12,
    neighbours=every_duel_moves,
    randomizes=True,
    distribution=rucb_distribution,
)
ENTRIES = {
    "rucb": RUCB,
    "rucb_blocks": replace(
        RUCB,
        summary="duels the likely champion with its strongest rival, by Laplace-noised wins in doubling blocks",
        source="Zoghi, Whiteson, Munos & de Rijke (2014), Algorithm 1, by doubling blocks of Azize & Basu (2022)",
        variant={"release": "blocks"},
        sizes={"num_arms": 2},
        neighbours=_a_later_duel,
        randomizes=False,
        distribution=None,
    ),
}

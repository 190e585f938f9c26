"""Registry entries of `rucb`."""

from dataclasses import replace
from typing import Any

import numpy as np

from jaxdp import dueling
from jaxdp.audit import UserData
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.dueling._distributions import first_duel, report_distribution
from jaxdp.registry.dueling._duels import PRIVATIZED, a_user_changes, duel_entry, every_duel_moves, one_good_arm

ORDER = 440  # position of the entries in lists


def _a_later_duel(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs who differ in round 3, which starts the block of rounds 3 and 4 if there are two arms.

    The next block ends in round 8. A learner that forgets to restart its count of wins would release the wins of rounds
    3 and 4 twice.
    """
    return a_user_changes(num_arms, 8, 2)


def rucb_distribution(params: Any, data: UserData, *, num_arms: int) -> OutputDistribution:
    """Returns the distribution of the report on the first duel, of two distinct arms that are drawn uniformly."""
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
        summary="duels the likely champion with its strongest rival, by wins with Laplace noise in doubling blocks",
        source="Zoghi, Whiteson, Munos & de Rijke (2014), Algorithm 1, by doubling blocks of Azize & Basu (2022)",
        variant={"release": "blocks"},
        sizes={"num_arms": 2},
        neighbours=_a_later_duel,
        randomizes=False,
        distribution=None,
    ),
}
USES = {  # shown on pages of the site
    "rucb": {
        "use": "Use it for duels with a Condorcet winner, with local reports, or with a curator by blocks.",
        "not": "At small ε the local variant explores all its duels; with a curator use the variant by blocks.",
    },
}

"""The entry of `ebs_local`."""

from typing import Any

import numpy as np

from jaxdp import dueling
from jaxdp.audit import UserData
from jaxdp.audit.enumeration import Values
from jaxdp.audit.exact import OutputDistribution
from jaxdp.registry.dueling._distributions import report_distribution
from jaxdp.registry.dueling._duels import SAHA_ASI, duel_entry, every_duel_moves, one_good_arm

ORDER = 430  # position of the entries in lists


def ebs_local_distribution(params: Any, data: UserData, *, num_arms: int, horizon: int) -> OutputDistribution:
    """Returns the distribution of the last user's report: a pair of arms, and the randomized outcome of their duel.

    The left arm is uniform over the active arms that were least often the left arm in duels with active arms. The right
    arm is uniform over all active arms.
    """

    def duels(params: Any, public: Any, context: None) -> Values:
        del params, context
        active = np.flatnonzero(public.active)
        played = public.plays[np.ix_(active, active)].sum(axis=1)
        least_played = active[played == played.min()]
        chance = 1 / (len(least_played) * len(active))
        return [(np.asarray([left, right]), chance) for left in least_played for right in active]

    return report_distribution(dueling.ebs_local(num_arms=num_arms, horizon=horizon), params, data, duels)


ENTRIES = {
    "ebs_local": duel_entry(
        summary="drops arms with an interval below another arm's interval, from randomized outcomes",
        source=f"{SAHA_ASI} and Remark 3",
        factory=dueling.ebs_local,
        sizes={"num_arms": 3, "horizon": 16},
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.2},
        environment=one_good_arm,
        neighbours=every_duel_moves,
        randomizes=True,
        distribution=ebs_local_distribution,
    ),
}
USES = {  # shown on pages of the site
    "ebs_local": {
        "use": "Use it for Borda scores without a curator.",
        "not": (
            "At ε well below 1 the local noise dominates: a shuffler (`ebs_shuffle`) or a curator (`ebs_phased`) "
            "costs far less."
        ),
    },
}

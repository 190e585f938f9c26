"""Registry entries of `versatile_sparring`."""

from dataclasses import replace
from typing import Any

import numpy as np

from jaxdp import dueling
from jaxdp.audit import UserData
from jaxdp.audit.enumeration import Values
from jaxdp.audit.exact import OutputDistribution
from jaxdp.core import Environment
from jaxdp.preferences import cyclic_matrix, lower_bound_matrix
from jaxdp.registry.dueling._distributions import report_distribution
from jaxdp.registry.dueling._duels import PRIVATIZED, duel_entry, every_duel_moves

ORDER = 450  # position of the entries in lists


def _cyclic(num_arms: int) -> Environment:
    return dueling.matrix_duels(cyclic_matrix(num_arms), regret="borda")


def _switching(num_arms: int, horizon: int) -> Environment:
    """Makes a world in which the last arm becomes the best after two fifths of the rounds."""
    matrices = [lower_bound_matrix(num_arms), lower_bound_matrix(num_arms, num_arms - 1)]
    return dueling.switching_duels(matrices, [0, 2 * horizon // 5])


SPARRING = (
    "Ailon, Karnin & Joachims (2014), sparring; Saha & Gaillard (2022), with Tsallis-INF (Zimmert & Seldin, 2021); "
    + PRIVATIZED
)


def versatile_sparring_distribution(params: Any, data: UserData, *, num_arms: int) -> OutputDistribution:
    """Returns the distribution of the last user's report: a pair of arms, and the randomized outcome of their duel.

    Two players draw the two arms independently, each with probabilities proportional to that player's weights.
    """

    def duels(params: Any, public: Any, context: None) -> Values:
        del params, context
        weights = np.outer(*np.asarray(public.weights, np.float64).T)
        return [(np.asarray(pair), chance) for pair, chance in np.ndenumerate(weights / weights.sum())]

    return report_distribution(dueling.versatile_sparring(num_arms=num_arms), params, data, duels)


VERSATILE_SPARRING = duel_entry(
    summary="two Tsallis-INF players draw the arms of a duel, by randomized outcomes",
    source=SPARRING,
    factory=dueling.versatile_sparring,
    sizes={"num_arms": 3},
    values={"epsilon": 1.0},
    environment=_cyclic,
    horizon=12,
    neighbours=every_duel_moves,
    randomizes=True,
    distribution=versatile_sparring_distribution,
)
ENTRIES = {
    "versatile_sparring": VERSATILE_SPARRING,
    "versatile_sparring_gaussian": replace(
        VERSATILE_SPARRING,
        summary="two Tsallis-INF players draw the arms of a duel, by outcomes with Gaussian noise",
        variant={"report": "gaussian", "losses": "reduced_variance"},
        sizes={"num_arms": 3, "horizon": 10},
        values={"epsilon": 1.0, "delta": 1e-3},
        environment=_switching,
        horizon=10,
        randomizes=False,
        distribution=None,
    ),
}
USES = {  # shown on pages of the site
    "versatile_sparring": {
        "use": (
            "Use it for duels with utilities or drifting preferences and local reports: two players of `tsallis_inf`."
        ),
        "not": "If utilities do not change, `double_thompson` may have a lower regret: simulate both.",
    },
}

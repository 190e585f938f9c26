"""The entry of `g_optimal_elimination`."""

import numpy as np

from jaxdp import dueling
from jaxdp.audit import UserData, feedback_of_pair
from jaxdp.core import Environment, Learner
from jaxdp.registry.draws import change_answers
from jaxdp.registry.dueling._duels import draw_duels
from jaxdp.registry.entries import LearnerEntry
from jaxdp.registry.second import Second

ORDER = 470  # position of the entries in lists


def _arms(num_arms: int) -> np.ndarray:
    """Places arms evenly on a circle in the plane, [num_arms, 2].

    With four arms the design has two pairs, the diagonals, so the two coefficients of the fitted model reveal both
    counts of wins. With three arms it has three pairs, and two coefficients would not reveal three counts.
    """
    angles = 2 * np.pi * np.arange(num_arms) / num_arms
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def g_optimal_elimination(*, num_arms: int) -> Learner:
    """Makes `dueling.g_optimal_elimination` for arms in the plane."""
    return dueling.g_optimal_elimination(features=_arms(num_arms))


def _linear(num_arms: int) -> Environment:
    return dueling.linear_duels(_arms(num_arms), [0.8, 0.5])


def _the_first_duel_moves(num_arms: int, rounds: int = 4) -> tuple[UserData, UserData]:
    """Returns users of two runs: the left arm wins all duels, except that it loses the first duel of the first run.

    The first phase has two duels. The first answer is used when this phase ends, and again in the next phase if the
    count of wins does not restart from zero.
    """
    lost = np.ones((rounds, num_arms, num_arms), np.int32)
    lost[0] = 0
    return change_answers(lost, 0, 1)


def _two_phases(num_arms: int) -> tuple[UserData, UserData]:
    return _the_first_duel_moves(num_arms, 12)


ENTRIES = {
    # The first phase has two duels, the second at most six. Noise is so large that a single duel changes decisions.
    "g_optimal_elimination": LearnerEntry(
        family="linear dueling bandits",
        title="G-optimal elimination",
        summary="plays duels of an optimal design, and drops arms with features by a model of wins with Laplace noise",
        source="Saha & Asi (2024), Algorithm 2, corrected",
        proof="proved",
        factory=g_optimal_elimination,
        sizes={"num_arms": 4},
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 2e-4},
        environment=_linear,
        horizon=12,
        neighbours=_the_first_duel_moves,
        draw_user=draw_duels,
        users_answer=feedback_of_pair,
        second=Second(neighbours=_two_phases),
    ),
}
USES = {  # shown on pages of the site
    "g_optimal_elimination": {
        "use": (
            "Use it for duels among arms with known features and a curator: noise grows with the dimension, not with "
            "the number of arms."
        ),
        "not": (
            "If the linear model is wrong, so are its eliminations. With fewer arms than dimensions use `rucb` or "
            "`ebs_phased`."
        ),
    },
}

"""Exact distributions of the reports of several dueling bandits."""

from typing import Any

import numpy as np

from jaxdp.audit import UserData, feedback_of_pair
from jaxdp.audit.enumeration import Values, ValuesOf, transcript_distribution
from jaxdp.audit.exact import OutputDistribution
from jaxdp.core import Learner
from jaxdp.registry.distributions import budget_of, label_distribution


def first_duel(chances: np.ndarray) -> ValuesOf:
    """Returns an `act_distribution` for runs of one round, in which pair (i, j) has probability `chances[i, j]`."""

    def duels(params: Any, public: Any, context: None) -> Values:
        del params, context
        if public.round > 0:
            raise ValueError(
                f"data must have one round, the only one with a known distribution, got round {public.round + 1}"
            )
        return [(np.asarray(pair), chance) for pair, chance in np.ndenumerate(chances)]

    return duels


def report_distribution(learner: Learner, params: Any, data: UserData, duels: ValuesOf) -> OutputDistribution:
    """Returns the distribution of the last user's pair of arms and randomized outcome, for a local learner.

    `duels` maps (params, public, context) to the pairs that the learner may play, with their probabilities.
    """

    def reports(params: Any, public: Any, context: None, action: np.ndarray, won: np.ndarray) -> Values:
        del public, context
        return [
            ((action, response), chance) for response, chance in label_distribution(params, won, num_labels=2).items()
        ]

    claim, last = learner.guarantee(epsilon=budget_of(params)), len(data.answers) - 1
    return transcript_distribution(
        learner,
        params,
        data,
        guarantee=claim,
        changed=last,
        answer=feedback_of_pair,
        act_distribution=duels,
        report_distribution=reports,
    )

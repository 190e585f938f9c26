"""Exact distributions of the reports of several dueling bandits."""

from typing import Any

import numpy as np

from jaxdp.audit import Users, by_pair
from jaxdp.audit.enumeration import Told, Values, transcript_law
from jaxdp.audit.exact import Law
from jaxdp.core import Learner
from jaxdp.registry.laws import budget_of, label_law


def first_duel(chances: np.ndarray) -> Told:
    """Returns the distribution of the first pair, given by a matrix of probabilities."""

    def duels(params: Any, public: Any, context: None) -> Values:
        del params, context
        if public.round > 0:
            raise ValueError(f"data must have 1 round, of which the law is known, got round {public.round + 1}")
        return [(np.asarray(pair), chance) for pair, chance in np.ndenumerate(chances)]

    return duels


def report_law(learner: Learner, params: Any, data: Users, duels: Told) -> Law:
    """Returns the distribution of the last user's pair of arms and randomized outcome, for a local learner."""

    def reports(params: Any, public: Any, context: None, action: np.ndarray, won: np.ndarray) -> Values:
        del public, context
        return [((action, response), chance) for response, chance in label_law(params, won, num_labels=2).items()]

    claim, last = learner.guarantee(epsilon=budget_of(params)), len(data.answers) - 1
    return transcript_law(
        learner, params, data, claim=claim, changed=last, answer=by_pair, act_law=duels, report_law=reports
    )

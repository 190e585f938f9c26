"""The entry of `noisy_argmax`."""

from typing import Any

import jax
import numpy as np

from jaxdp import bandits
from jaxdp.audit import UserData
from jaxdp.audit.enumeration import Values, transcript_distribution
from jaxdp.audit.exact import OutputDistribution
from jaxdp.core import State
from jaxdp.registry.bandits._rewards import bandit_entry, bernoulli, draw_binary, one_reward_moves
from jaxdp.registry.distributions import budget_of, noisy_max_distribution
from jaxdp.registry.second import Second

ORDER = 195  # position of the entries in lists


def _neighbours(num_arms: int, num_rounds: int) -> tuple[UserData, UserData]:
    return one_reward_moves(0, 1, num_arms, num_rounds, np.int32)


def noisy_argmax_distribution(params: Any, data: UserData, *, num_arms: int, num_rounds: int) -> OutputDistribution:
    """Returns the distribution of the adversary's view.

    After the last round, the recommended arm has the largest total after exponential noise of mean 1 / epsilon. This
    mechanism is permute-and-flip with the budget 2 * epsilon: its noise has mean 2 / budget. The release is epsilon-DP
    here because one user changes only one total. Before the last round, the recommended arm is drawn uniformly.
    """
    learner = bandits.noisy_argmax(num_arms=num_arms, num_rounds=num_rounds)

    def recommend(state: State, chances: OutputDistribution) -> Values:
        released = state.public._replace
        return [(state._replace(public=released(best_arm=arm)), chance) for arm, chance in chances.items()]

    def start(params: Any) -> Values:
        return recommend(learner.init(jax.random.key(0), params), dict.fromkeys(range(num_arms), 1 / num_arms))

    def select(params: Any, state: State, report: Any) -> Values | None:
        if state.public.round + 1 != num_rounds:
            return None
        arm, reward = report
        totals = state.private.totals + (np.arange(num_arms) == arm) * min(max(int(reward), 0), 1)
        chances = noisy_max_distribution(np.float64(2 * budget_of(params)), totals, noise="exponential")
        after = State(state.private._replace(totals=totals), state.public._replace(round=state.public.round + 1))
        return recommend(after, chances)

    claim = learner.guarantee(epsilon=budget_of(params))
    return transcript_distribution(
        learner, params, data, guarantee=claim, init_distribution=start, update_distribution=select
    )


ENTRIES = {
    "noisy_argmax": bandit_entry(
        summary="plays binary arms in turn, then recommends the arm with the largest total after exponential noise",
        source="report noisy max, Dwork & Roth (2014), Claim 3.9; permute-and-flip, McKenna & Sheldon (2020)",
        factory=bandits.noisy_argmax,
        draws_in_update=True,
        sizes={"num_arms": 3, "num_rounds": 6},
        values={"epsilon": 1.0},
        environment=bernoulli,
        horizon=20,
        neighbours=_neighbours,
        draw_user=draw_binary,
        distribution=noisy_argmax_distribution,
        second=Second({"num_rounds": 12}),
    ),
}
USES = {  # shown on pages of the site
    "noisy_argmax": {
        "use": "Use it to pick one of several arms after a fixed number of plays, with a curator and pure privacy.",
        "not": "It cannot stop early. `pairwise_elimination_central` stops when the data suffice.",
    },
}

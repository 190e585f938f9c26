"""The entry of `successive_elimination_central`."""

from functools import partial

from jaxdp import bandits
from jaxdp.registry.bandits._rewards import bandit_entry, bernoulli, draw_binary, first_reward_moves
from jaxdp.registry.second import Second

ORDER = 190  # position of the entries in lists

ENTRIES = {
    "successive_elimination_central": bandit_entry(
        summary="plays arms in epochs, and after each drops arms whose mean with Laplace noise is low",
        source="Sajed & Sheffet (2019), DP successive elimination",
        factory=bandits.successive_elimination_central,
        # Among three arms, only an arm's own noise can keep it if it is far behind. Between two arms, the noise of the
        # other arm can keep it, too.
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.016},
        environment=bernoulli,
        horizon=40,
        neighbours=partial(first_reward_moves, plays_of_each=4),  # the first epoch
        draw_user=draw_binary,
        # The first epoch ends after half of the rounds.
        second=Second(neighbours=partial(first_reward_moves, plays_of_each=8)),
    ),
}
USES = {  # shown on pages of the site
    "successive_elimination_central": {
        "use": (
            "Use it with a curator when few releases are wanted: each epoch releases one noisy total for each "
            "remaining arm."
        ),
        "not": "At ε near 1 `ucb_central` usually has a lower regret, because it need not finish an epoch.",
    },
}

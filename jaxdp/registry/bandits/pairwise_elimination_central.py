"""The entry of `pairwise_elimination_central`."""

from functools import partial

from jaxdp import bandits
from jaxdp.registry.bandits._best_arm import bernoulli
from jaxdp.registry.bandits._rewards import bandit_entry, draw_binary, first_reward_moves
from jaxdp.registry.second import Second

ORDER = 203  # position of the entries in lists

ENTRIES = {
    "pairwise_elimination_central": bandit_entry(
        summary="finds the best arm by bets on pairs of arms, from totals that get Laplace noise once per epoch",
        source="Turner, Ly & Grünwald (2024), arXiv 2106.02693, for the bets; the noise and the union bound are ours",
        factory=bandits.pairwise_elimination_central,
        sizes={"num_arms": 3},
        # so that few rounds may drop an arm: epochs end after 1, 2, 4, 8, ... turns
        values={"epsilon": 1.0, "failure_prob": 0.9, "log_odds_ratio": 1.0, "first_look": 2, "growth": 1.0},
        environment=bernoulli,
        horizon=40,
        neighbours=partial(first_reward_moves, plays_of_each=1),  # the first epoch
        draw_user=draw_binary,
        # Three epochs: the release of the first epoch decides later epochs' bets.
        second=Second(neighbours=partial(first_reward_moves, plays_of_each=6)),
    )
}
USES = {  # shown on pages of the site
    "pairwise_elimination_central": {
        "use": (
            "Use it with a curator to find the best arm at a given error probability, when a test should stop early."
        ),
        "not": "It minimises users, not regret. If the number of users is fixed in advance, `noisy_argmax` is simpler.",
    },
}

"""Registry entries of `successive_elimination`."""

from dataclasses import replace

from jaxdp import bandits
from jaxdp.registry.bandits._best_arm import REPORTED, bernoulli, gaussian
from jaxdp.registry.bandits._rewards import bandit_entry, draw_any, draw_binary, every_reward_leaves, every_reward_moves

ORDER = 220  # position of the entries in lists

ELIMINATION = f"Even-Dar, Mannor & Mansour (2006), Algorithm 3; {REPORTED}"
# The confidence multiplier makes intervals so narrow that the third sweep may drop an arm.
SUCCESSIVE_ELIMINATION = bandit_entry(
    summary="finds the best arm by dropping arms with low means of randomized binary rewards",
    source=ELIMINATION,
    factory=bandits.successive_elimination,
    sizes={"num_arms": 3},
    values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.3},
    environment=bernoulli,
    horizon=16,
    neighbours=every_reward_moves,
    draw_user=draw_binary,
    randomizes=True,
)
ENTRIES = {
    "successive_elimination": SUCCESSIVE_ELIMINATION,
    "successive_elimination_bounded": replace(
        SUCCESSIVE_ELIMINATION,
        summary="finds the best arm by dropping arms with low means of randomized responses of bounded rewards",
        variant={"rewards": "bounded"},
        values={"epsilon": 1.0, "failure_prob": 0.1, "reward_low": -1.0, "reward_high": 2.0},
        environment=gaussian,
        horizon=12,
        neighbours=every_reward_leaves,
        draw_user=draw_any,
    ),
}
USES = {  # shown on pages of the site
    "successive_elimination": {
        "use": "Use it for the best arm with local reports, as the textbook algorithm with a union bound.",
        "not": "For binary rewards `pairwise_elimination` needs fewer users at the same error probability.",
    },
}

"""The entry of `ucb`."""

from jaxdp import bandits
from jaxdp.registry.bandits._rewards import ON_REPORTS, bandit_entry, draw_any, every_reward_leaves, gaussian

ORDER = 160  # position of the entries in lists

ENTRIES = {
    "ucb": bandit_entry(
        summary="plays the arm with the largest upper bound, from clipped and randomized rewards",
        source=f"Auer, Cesa-Bianchi & Fischer (2002), UCB1; {ON_REPORTS}",
        factory=bandits.ucb,
        variant={"rewards": "bounded"},
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "reward_low": -1.0, "reward_high": 2.0},
        environment=gaussian,
        horizon=12,
        neighbours=every_reward_leaves,
        draw_user=draw_any,
        randomizes=True,
    ),
}
USES = {  # shown on pages of the site
    "ucb": {
        "use": "Use it with local reports and fixed means, when you need a regret bound that holds at every ε.",
        "not": (
            "`thompson` has a lower regret on the same reports, with a bound that grows faster in 1/ε. If you have a "
            "curator, `ucb_central` needs far less noise at small ε."
        ),
    },
}

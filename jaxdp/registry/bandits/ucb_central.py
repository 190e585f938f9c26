"""Registry entries of `ucb_central`."""

from dataclasses import replace

from jaxdp import bandits
from jaxdp.registry.bandits._rewards import (
    bandit_entry,
    bernoulli,
    draw_binary,
    first_arm_stays,
    first_reward_moves,
)
from jaxdp.registry.second import Second

ORDER = 200  # position of the entries in lists


UCB_CENTRAL = bandit_entry(
    summary="plays the arm with the largest upper bound, from totals of doubling blocks with Laplace noise",
    source="Auer, Cesa-Bianchi & Fischer (2002), UCB1; Azize & Basu (2022)",
    factory=bandits.ucb_central,
    draws_in_update=True,
    sizes={"num_arms": 3},
    values={"epsilon": 1.0},
    environment=bernoulli,
    horizon=30,
    neighbours=first_reward_moves,
    draw_user=draw_binary,
    second=Second(neighbours=first_arm_stays),
)
ENTRIES = {
    "ucb_central": UCB_CENTRAL,
    "ucb_central_tree": replace(
        UCB_CENTRAL,
        summary="plays the arm with the largest upper bound, from continual counters of rewards, one per arm",
        source="Auer, Cesa-Bianchi & Fischer (2002), UCB1; Mishra & Thakurta (2015)",
        variant={"release": "tree"},
        sizes={"num_arms": 2, "horizon": 10},
        second=Second({"horizon": 24}, neighbours=first_arm_stays),
        horizon=10,
    ),
}
USES = {  # shown on pages of the site
    "ucb_central": {
        "use": "Use it with a curator and fixed means, if upper bounds must hold with a proved probability at every ε.",
        "not": (
            "On five arms `imed_central` and `thompson_central` had lower regrets. At ε of a few "
            "hundredths `successive_elimination_central` may have a lower regret. Without a curator "
            'use `ucb` or `thompson`. The variant `release="tree"` is there for comparison: at the same ε its regret '
            "is larger."
        ),
    },
}

"""Registry entry of `pairwise_elimination`."""

from jaxdp import bandits
from jaxdp.registry.bandits._best_arm import bernoulli
from jaxdp.registry.bandits._rewards import bandit_entry, draw_binary, every_reward_moves

ORDER = 205  # position of the entries in lists

ENTRIES = {
    "pairwise_elimination": bandit_entry(
        summary="finds the best arm by dropping arms that lose tests of pairs of users, on randomized binary rewards",
        source="Wald (1947), chapter 6, for pairs; the mixture over effects and the union bound are ours",
        factory=bandits.pairwise_elimination,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "failure_prob": 0.9},  # so that few rounds may drop an arm
        environment=bernoulli,
        horizon=16,
        neighbours=every_reward_moves,
        draw_user=draw_binary,
        randomizes=True,
    )
}
USES = {  # shown on pages of the site
    "pairwise_elimination": {
        "use": (
            "Use it with local reports to find the best of a few arms at a given error probability, with a test that "
            "is valid at every look."
        ),
        "not": "It minimises users, not regret; with a curator `pairwise_elimination_central` needs fewer users.",
    },
}

"""The entry of `thompson`."""

from jaxdp import bandits
from jaxdp.registry.bandits._rewards import bandit_entry, bernoulli, draw_binary, every_reward_moves

ORDER = 170  # position of the entries in lists

ENTRIES = {
    "thompson": bandit_entry(
        title="Thompson sampling",
        summary="plays the arm that is best in a draw from the posterior of randomized rewards",
        source="Thompson (1933); Agrawal & Goyal (2012), Algorithm 1, by randomized responses of Warner (1965)",
        factory=bandits.thompson,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0},
        environment=bernoulli,
        horizon=8,
        neighbours=every_reward_moves,
        draw_user=draw_binary,
        randomizes=True,
    ),
}
USES = {  # shown on pages of the site
    "thompson": {
        "use": "Use it with local reports of binary rewards, when the regret itself counts.",
        "not": (
            'The order of its regret bound grows with 1/ε⁵, and the posterior "debiased" has no bound. For rewards '
            "that drift, use `tsallis_inf`."
        ),
    },
}

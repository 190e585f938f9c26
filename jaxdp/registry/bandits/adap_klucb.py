"""Registry entry of `adap_klucb`."""

from jaxdp import bandits
from jaxdp.registry.bandits._rewards import (
    bandit_entry,
    bernoulli,
    draw_binary,
    first_arm_stays,
    first_reward_moves,
)
from jaxdp.registry.second import Second

ORDER = 198  # position of the entry in lists

ENTRIES = {
    "adap_klucb": bandit_entry(
        title="AdaP-KLUCB",
        summary="plays the arm with the largest KL-UCB index, from the noisy total of its last doubling block",
        source="Azize & Basu (2022), AdaP-KLUCB",
        factory=bandits.adap_klucb,
        draws_in_update=True,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0},
        environment=bernoulli,
        horizon=30,
        neighbours=first_reward_moves,
        draw_user=draw_binary,
        second=Second(neighbours=first_arm_stays),
    ),
}
USES = {  # shown on pages of the site
    "adap_klucb": {
        "use": "Use it as a published baseline, with a curator, fixed means and binary rewards.",
        "not": (
            "`imed_central` is better. On five arms of means 0.75 to 0.25, regret in 10^5 rounds at ε = 1 was 1,155 "
            "± 16 (100 runs), and with `imed_central` 106 ± 5 (4,000 runs). `ucb_central` lost less there, but more at "
            "ε = 0.1 or means 0.9 to 0.5."
        ),
    },
}

"""Entry of `adap_klucb`."""

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

"""Registry entries of `imed_central`."""

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

ORDER = 197  # position of the entries in lists

IMED_CENTRAL = bandit_entry(
    title="IMED, central",
    summary="plays the arm with the least n d + ln n, by a divergence d that accounts for the noise of totals",
    source="Azize, Wu, Honda, Orabona, Ito & Basu (2025), DP-IMED",
    factory=bandits.imed_central,
    draws_in_update=True,
    sizes={"num_arms": 3},
    values={"epsilon": 1.0, "growth": 0.5},
    environment=bernoulli,
    horizon=30,
    neighbours=first_reward_moves,
    draw_user=draw_binary,
    second=Second(values={"growth": 1.0}, neighbours=first_arm_stays),
)
ENTRIES = {
    "imed_central": IMED_CENTRAL,
    "imed_central_kl_ucb": replace(
        IMED_CENTRAL,
        title="KL-UCB, central",
        summary="plays the arm with the largest plausible mean, by a divergence that accounts for the noise of totals",
        source="Azize, Wu, Honda, Orabona, Ito & Basu (2025), DP-KLUCB",
        variant={"index": "kl_ucb"},
    ),
}
USES = {  # shown on pages of the site
    "imed_central": {
        "use": (
            "Use it with a curator, fixed means and binary rewards. On five arms, regret in 10^5 rounds at ε = 1 was "
            "106 ± 5 (4,000 runs); `ucb_central` had 1,020 ± 9."
        ),
        "not": (
            "Some runs leave the best arm for good: regret exceeded 1,000 in 0.6% of runs, and in 4% at ε = .25. There "
            '`index="kl_ucb"` is safer.'
        ),
    },
}

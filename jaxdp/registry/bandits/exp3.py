"""The entry of `exp3`."""

from jaxdp import bandits
from jaxdp.registry.bandits._rewards import bandit_entry, draw_any, every_reward_leaves, gaussian

ORDER = 180  # position of the entries in lists

ENTRIES = {
    "exp3_laplace": bandit_entry(
        summary="draws arms by exponential weights, from clipped rewards with Laplace noise",
        source="Auer et al. (2002), Exp3; Tossou & Dimitrakakis (2017)",
        factory=bandits.exp3,
        variant={"report": "laplace", "rewards": "bounded"},
        sizes={"num_arms": 3, "horizon": 8},
        values={"epsilon": 1.0, "reward_low": -1.0, "reward_high": 2.0},
        environment=gaussian,
        neighbours=every_reward_leaves,
        draw_user=draw_any,
    ),
}
USES = {  # shown on pages of the site
    "exp3": {
        "use": (
            "Use it to compare with the literature: it is the published Exp3 with Laplace noise, but each user adds "
            "the noise, not a curator."
        ),
        "not": "For your own problem use `tsallis_inf`, which has the better rate and also adapts to fixed means.",
    },
}

"""Registry entries of `tsallis_inf`."""

from dataclasses import replace

from jaxdp import bandits
from jaxdp.registry.bandits._rewards import (
    ON_REPORTS,
    bandit_entry,
    bernoulli,
    draw_any,
    draw_binary,
    every_reward_leaves,
    every_reward_moves,
    gaussian,
)

ORDER = 150  # position of the entries in lists

TSALLIS_INF = bandit_entry(
    summary="follows the leader regularised by Tsallis entropy, from randomized rewards",
    source=f"Zimmert & Seldin (2021), Algorithms 1 and 2; {ON_REPORTS}",
    factory=bandits.tsallis_inf,
    sizes={"num_arms": 3},
    values={"epsilon": 1.0},
    environment=bernoulli,
    horizon=12,
    neighbours=every_reward_moves,
    draw_user=draw_binary,
    randomizes=True,
)
ENTRIES = {
    "tsallis_inf": TSALLIS_INF,
    "tsallis_inf_gaussian": replace(
        TSALLIS_INF,
        summary="follows the leader regularised by Tsallis entropy, from clipped rewards with Gaussian noise",
        reached=0.8,  # attacks find less of a claim with Gaussian noise and a small delta
        variant={"report": "gaussian", "estimator": "rv", "rewards": "bounded"},
        sizes={"num_arms": 3, "horizon": 10},
        values={"epsilon": 1.0, "delta": 1e-3, "reward_low": -1.0, "reward_high": 2.0},
        environment=gaussian,
        neighbours=every_reward_leaves,
        draw_user=draw_any,
        horizon=10,
        randomizes=False,
    ),
}
USES = {  # shown on pages of the site
    "tsallis_inf": {
        "use": (
            "Use it with local reports when rewards may change over time or react to the plays: one learner for "
            "stochastic and adversarial rewards."
        ),
        "not": (
            "If rewards have fixed means, `thompson` usually has a lower regret from about ε = 1 on. Under late "
            "feedback or for a person's visits, check it by simulation first: a run may settle on a bad arm."
        ),
    },
}

"""Registry entries of `lil_ucb`."""

from dataclasses import replace

from jaxdp import bandits
from jaxdp.registry.bandits._best_arm import REPORTED, bernoulli, gaussian
from jaxdp.registry.bandits._rewards import bandit_entry, draw_any, draw_binary, every_reward_leaves, every_reward_moves

ORDER = 210  # position of the entries in lists

LIL = f"Jamieson, Malloy, Nowak & Bubeck (2014), Theorem 2; {REPORTED}"
LIL_UCB = bandit_entry(
    summary="finds the best arm by iterated-logarithm upper bounds, from randomized binary rewards",
    source=LIL,
    factory=bandits.lil_ucb,
    sizes={"num_arms": 3},
    values={"epsilon": 1.0, "failure_prob": 0.1},
    environment=bernoulli,
    horizon=12,
    neighbours=every_reward_moves,
    draw_user=draw_binary,
    randomizes=True,
)
ENTRIES = {
    "lil_ucb": LIL_UCB,
    "lil_ucb_gaussian": replace(
        LIL_UCB,
        summary="finds the best arm by iterated-logarithm upper bounds, from bounded rewards with Gaussian noise",
        variant={"report": "gaussian", "rewards": "bounded", "constants": "heuristic"},
        values={"epsilon": 1.0, "delta": 1e-3, "failure_prob": 0.1, "reward_low": -1.0, "reward_high": 2.0},
        environment=gaussian,
        neighbours=every_reward_leaves,
        draw_user=draw_any,
        randomizes=False,
    ),
}
USES = {  # shown on pages of the site
    "lil_ucb": {
        "use": "Use it for the best arm with local reports when most arms are clearly worse than the best one.",
        "not": (
            "Rewards are binary in `pairwise_elimination`, which may stop earlier. The study ldp-best-arm plays both."
        ),
    },
}

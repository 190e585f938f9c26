"""Registry entries of `greedy_sgd`."""

from jaxdp.bandits import contextual
from jaxdp.registry.bandits.contextual._users import entry

ORDER = 295  # position of the entries in lists

ENTRIES = {
    "greedy_sgd": entry(
        "plays the best arm of a linear model fitted by SGD, from reports that are random points of a sphere",
        contextual.greedy_sgd,
        "Han, Liang, Wang & Zhang (2021), greedy play on stochastic gradients; Duchi, Jordan & Wainwright (2018), "
        "section 4.2.3",
        sizes={"num_arms": 2, "dim": 2},
        horizon=12,
        values={"epsilon": 1.0},
        randomizes=True,
    ),
}
USES = {  # shown on pages of the site
    "greedy_sgd": {
        "use": (
            "Use it without a curator if contexts vary from round to round: with real rewards it had less regret "
            'than `linear_ucb(report="l2_ball")` at each ε from 0.5 to 8.'
        ),
        "not": (
            "If arms have the same contexts in every round, its regret can grow linearly: use `linear_ucb`. For "
            "rewards of 1 or -1 set `gradient_bound=1`."
        ),
    },
}

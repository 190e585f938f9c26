"""Registry entries of `linear_ucb`."""

from jaxdp.bandits import contextual
from jaxdp.registry.bandits.contextual._users import entry

ORDER = 280  # position of the entries in lists

ALGORITHM_5 = "Zheng, Cai, Huang, Li & Wang (2020), Algorithm 5"
ENTRIES = {
    "linear_ucb": entry(
        "plays the arm with the largest upper bound in a linear model, from contexts and rewards with Gaussian noise",
        contextual.linear_ucb,
        ALGORITHM_5,
        variant={"update_every": 3},
        values={"epsilon": 1.0, "delta": 1e-2},
    ),
    "linear_ucb_ball": entry(
        "plays the arm with the largest upper bound in a linear model, from random points of a sphere",
        contextual.linear_ucb,
        f"{ALGORITHM_5}; Duchi, Jordan & Wainwright (2018), section 4.2.3",
        variant={"report": "l2_ball", "update_every": 0.5},
        values={"epsilon": 1.0},
        randomizes=True,
    ),
}
USES = {  # shown on pages of the site
    "linear_ucb": {
        "use": (
            'Use it for contextual bandits with a linear model and no curator. `report="l2_ball"` gives pure '
            "privacy; on the measured problem it also has the lower regret up to ε = 4."
        ),
        "not": (
            "With a curator use `linear_ucb_joint`, which costs far less. In many dimensions the noise on d (d + 1) "
            "/ 2 moments dominates."
        ),
    },
}

"""Registry entries of `generalized_linear`."""

from jaxdp.bandits import contextual
from jaxdp.core import Environment
from jaxdp.registry.bandits.contextual._users import entry

ORDER = 290  # position of the entries in lists


def logistic_world(num_arms: int, dim: int) -> Environment:
    """Makes a world with contexts on the sphere, and rewards of 0 or 1."""
    return contextual.generalized_linear_contexts(num_arms=num_arms, dim=dim)


ALGORITHM_3 = "Zheng, Cai, Huang, Li & Wang (2020), Algorithm 3"
ENTRIES = {
    "generalized_linear": entry(
        "plays the arm with the largest upper bound in a logistic model, with labels from noisy gradient descent",
        contextual.generalized_linear,
        f"{ALGORITHM_3}; Jun, Bhargava, Nowak & Willett (2017), GLOC",
        variant={"update_every": 1},
        values={"epsilon": 1.0, "delta": 1e-2},
        environment=logistic_world,
    ),
    "generalized_linear_ball": entry(
        "plays the arm with the largest upper bound in a probit model, from random points of a sphere",
        contextual.generalized_linear,
        f"{ALGORITHM_3}; Duchi, Jordan & Wainwright (2018), section 4.2.3",
        variant={"link": "probit", "report": "l2_ball", "update_every": 0.5},
        values={"epsilon": 1.0},
        environment=logistic_world,
        randomizes=True,
    ),
}
USES = {  # shown on pages of the site
    "generalized_linear": {
        "use": "Use it for contextual bandits with binary or other non-linear rewards and no curator.",
        "not": "If a linear model fits, `linear_ucb` has less noise for the same ε.",
    },
}

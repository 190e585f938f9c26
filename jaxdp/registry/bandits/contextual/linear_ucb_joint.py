"""Registry entries of `linear_ucb_joint`."""

from dataclasses import replace

import jax
import numpy as np

from jaxdp.audit import UserData
from jaxdp.bandits import contextual
from jaxdp.registry.bandits.contextual._users import a_user_is_replaced, context_of, entry
from jaxdp.registry.second import Second

ORDER = 300  # position of the entries in lists


def the_first_user_is_replaced(num_arms: int, dim: int, later: int = 2) -> tuple[UserData, UserData]:
    """Returns users of two runs, which differ in the first user; the next `later` users are the same in both runs.

    The more users come later, the more releases of the learner's counter depend on the first user. Later rewards are
    NaN.
    """
    context = np.asarray(context_of(2, num_arms, dim), float)
    later_users = UserData(np.full((later, num_arms), np.nan), context[None].repeat(later, 0))
    first, second = (
        jax.tree.map(lambda *parts: np.concatenate(parts), user, later_users)
        for user in a_user_is_replaced(num_arms, dim)
    )
    return first, second


def the_first_of_sixteen(num_arms: int, dim: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of sixteen rounds, who differ only in round one, for counters with more levels."""
    return the_first_user_is_replaced(num_arms, dim, later=15)


JOINT = entry(
    "plays the arm with the largest upper bound in a linear model, from continual counters of moments",
    contextual.linear_ucb_joint,
    "Shariff & Sheffet (2018), Algorithms 1 and 2",
    variant={"update_every": 1},
    sizes={"num_arms": 2, "dim": 2, "horizon": 4},
    values={"epsilon": 1.0, "delta": 1e-2},
    neighbours=the_first_user_is_replaced,
    second=Second({"horizon": 16}, neighbours=the_first_of_sixteen),
)
ENTRIES = {
    "linear_ucb_joint": JOINT,
    "linear_ucb_joint_tree": replace(
        JOINT,
        summary="plays the arm with the largest upper bound in a linear model, from trees of noisy blocks of moments",
        variant={"counter": "tree", "update_every": 0.5},
    ),
}
USES = {  # shown on pages of the site
    "linear_ucb_joint": {
        "use": (
            "Use it for contextual bandits when a curator may see contexts and rewards, and the outputs for all "
            "others must not reveal a user's data."
        ),
        "not": (
            "A user's own action depends on the context without noise. If the action itself is published with the "
            "user's identity, the claim does not cover it."
        ),
    },
}

"""Contextual bandits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import Users
from jaxdp.bandits import contextual
from jaxdp.core import Environment, default_float
from jaxdp.registry.entries import LearnerEntry
from jaxdp.registry.second import Second

HUGE = 1e30  # beyond what learners scale contexts and rewards down to; its square overflows
# Of two dimensions: users 1 and 2, with rewards of opposite sign, are as far apart as two can be.
CONTEXTS = np.array([[HUGE, 0.0], [0.5 * HUGE, 0.75**0.5 * HUGE], [-0.8, 0.6], [np.nan, 0.0]])
REWARDS = np.array([-HUGE, HUGE, np.nan])


def linear_world(num_arms: int, dim: int) -> Environment:
    """Contexts on the sphere."""
    return contextual.linear_contexts(num_arms=num_arms, dim=dim)


def logistic_world(num_arms: int, dim: int) -> Environment:
    """Contexts on the sphere, and rewards of 0 or 1."""
    return contextual.generalized_linear_contexts(num_arms=num_arms, dim=dim)


def context_of(index: Any, num_arms: int, dim: int) -> Any:
    """[num_arms, dim], one of `CONTEXTS` for every arm, so that the play does not matter."""
    padded = np.pad(CONTEXTS, ((0, 0), (0, dim - 2))).astype(default_float())
    return jnp.broadcast_to(jnp.asarray(padded)[index], (num_arms, dim))


def a_user_is_replaced(num_arms: int, dim: int) -> tuple[Users, Users]:
    """One round; context and reward are both replaced, such that the moments are as far apart as any."""
    return tuple(
        Users(np.full((1, num_arms), reward), np.asarray(context_of(index, num_arms, dim), float)[None])
        for index, reward in ((0, HUGE), (1, -HUGE))
    )  # pyright: ignore[reportReturnType]


def draw_user(key: jax.Array, num_arms: int, dim: int) -> Users:
    """Contexts and rewards beyond their bounds, and some that are no numbers; the arms' contexts are alike or not."""
    key_all, key_each, key_same, key_reward = jax.random.split(key, 4)
    alike = jnp.full(num_arms, jax.random.randint(key_all, (), 0, len(CONTEXTS)))
    each = jax.random.randint(key_each, (num_arms,), 0, len(CONTEXTS))
    index = jnp.where(jax.random.bernoulli(key_same), alike, each)
    padded = jnp.asarray(np.pad(CONTEXTS, ((0, 0), (0, dim - 2))), default_float())
    rewards = jax.random.choice(key_reward, jnp.asarray(REWARDS, default_float()), (num_arms,))
    return Users(rewards, padded[index])


def _entry(summary: str, factory: Any, source: str, **options: Any) -> LearnerEntry:
    given = {
        "sizes": {"num_arms": 2, "dim": 2, "horizon": 12},
        "environment": linear_world,
        "neighbours": a_user_is_replaced,
        "draw_user": draw_user,
        **options,
    }
    return LearnerEntry(
        family="contextual bandits", summary=summary, factory=factory, source=source, proof="proved", **given
    )


ALGORITHM_3 = "Zheng, Cai, Huang, Li & Wang (2020), Algorithm 3"
ALGORITHM_5 = "Zheng, Cai, Huang, Li & Wang (2020), Algorithm 5"

# ---- linear rewards, local privacy -----------------------------------------------------------------------------------
LINEAR = {
    "linear_ucb": _entry(
        "plays the arm with the largest upper bound in a linear model, by contexts and rewards with Gaussian noise",
        contextual.linear_ucb,
        ALGORITHM_5,
        variant={"update_every": 3},
        values={"epsilon": 1.0, "delta": 1e-2},
    ),
    "linear_ucb_ball": _entry(
        "the same by random points of a sphere",
        contextual.linear_ucb,
        f"{ALGORITHM_5}; Duchi, Jordan & Wainwright (2018), section 4.2.3",
        variant={"report": "l2_ball", "update_every": 0.5},
        values={"epsilon": 1.0},
        randomizes=True,
    ),
}


# ---- linear rewards, joint privacy -----------------------------------------------------------------------------------
def the_first_user_is_replaced(num_arms: int, dim: int, later: int = 2) -> tuple[Users, Users]:
    """As `a_user_is_replaced`, and users more, after whom the counter says more of the first."""
    context = np.asarray(context_of(2, num_arms, dim), float)
    others = Users(np.full((later, num_arms), np.nan), context[None].repeat(later, 0))
    first, second = (
        jax.tree.map(lambda *parts: np.concatenate(parts), one, others) for one in a_user_is_replaced(num_arms, dim)
    )
    return first, second


def the_first_of_sixteen(num_arms: int, dim: int) -> tuple[Users, Users]:
    """As `the_first_user_is_replaced`, and twelve users more, with whom a tree has four levels."""
    return the_first_user_is_replaced(num_arms, dim, later=15)


SIXTEEN = Second({"horizon": 16}, neighbours=the_first_of_sixteen)

JOINT = {
    "linear_ucb_joint": _entry(
        "plays the arm with the largest upper bound in a linear model, from continual counters of moments",
        contextual.linear_ucb_joint,
        "Shariff & Sheffet (2018), Algorithms 1 and 2",
        variant={"update_every": 1},
        sizes={"num_arms": 2, "dim": 2, "horizon": 4},
        values={"epsilon": 1.0, "delta": 1e-2},
        neighbours=the_first_user_is_replaced,
        second=SIXTEEN,
    ),
    "linear_ucb_joint_tree": _entry(
        "the same from trees of noisy blocks",
        contextual.linear_ucb_joint,
        "Shariff & Sheffet (2018), Algorithms 1 and 2",
        variant={"counter": "tree", "update_every": 0.5},
        sizes={"num_arms": 2, "dim": 2, "horizon": 4},
        values={"epsilon": 1.0, "delta": 1e-2},
        neighbours=the_first_user_is_replaced,
        second=SIXTEEN,
    ),
}


# ---- generalized linear rewards, local privacy -----------------------------------------------------------------------
GENERALIZED = {
    "generalized_linear": _entry(
        "the same in a logistic model, whose linear labels are predicted by noisy gradient descent",
        contextual.generalized_linear,
        f"{ALGORITHM_3}; Jun, Bhargava, Nowak & Willett (2017), GLOC",
        variant={"update_every": 1},
        values={"epsilon": 1.0, "delta": 1e-2},
        environment=logistic_world,
    ),
    "generalized_linear_ball": _entry(
        "the same in a probit model, by random points of a sphere",
        contextual.generalized_linear,
        f"{ALGORITHM_3}; Duchi, Jordan & Wainwright (2018), section 4.2.3",
        variant={"link": "probit", "report": "l2_ball", "update_every": 0.5},
        values={"epsilon": 1.0},
        environment=logistic_world,
        randomizes=True,
    ),
}

CONTEXTUAL = {**LINEAR, **GENERALIZED, **JOINT}

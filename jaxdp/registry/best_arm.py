"""Bandits that stop and name the best arm."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import bandits
from jaxdp.audit import Users
from jaxdp.core import Environment
from jaxdp.registry.draws import either, spread
from jaxdp.registry.entries import LearnerEntry

# Values beyond what a learner clips to are a user's to hold, too; NaN counts as the lowest.
LOW, HIGH = -5.0, 5.0


def _bernoulli(num_arms: int) -> Environment:
    return bandits.bernoulli_bandit(spread(0.9, 0.1, num_arms))


def _gaussian(num_arms: int) -> Environment:
    return bandits.gaussian_bandit(spread(0.9, 0.1, num_arms), stddev=0.5)


def _one_reward(low: float, high: float, num_arms: int, dtype: type) -> tuple[Users, Users]:
    """One round, in which every arm pays the least, or the most."""
    least, most = (Users(np.full((1, num_arms), reward, dtype)) for reward in (low, high))
    return least, most


def _binary_neighbours(num_arms: int) -> tuple[Users, Users]:
    return _one_reward(0, 1, num_arms, np.int32)


def _bounded_neighbours(num_arms: int) -> tuple[Users, Users]:
    return _one_reward(math.nan, HIGH, num_arms, float)


def _draw_binary(key: jax.Array, num_arms: int) -> Users:
    return Users(either(key, 0, 1, num_arms, jnp.int32))


def _draw_bounded(key: jax.Array, num_arms: int) -> Users:
    """Each arm pays too little, too much, or nothing that is a number."""
    choice = jax.random.randint(key, (num_arms,), 0, 3)
    return Users(jnp.asarray([LOW, HIGH, jnp.nan], float)[choice])


REPORTED = "on reports as in Zheng, Cai, Huang, Li & Wang (2020), Appendix B.2"
LIL = f"Jamieson, Malloy, Nowak & Bubeck (2014), Theorem 2; {REPORTED}"
ELIMINATION = f"Even-Dar, Mannor & Mansour (2006), Algorithm 3; {REPORTED}"

BEST_ARM = {
    "lil_ucb": LearnerEntry(
        family="bandits",
        summary="finds the best arm by upper bounds of the iterated logarithm, from randomized binary rewards",
        source=LIL,
        proof="proved",
        factory=bandits.lil_ucb,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "failure_prob": 0.1},
        environment=_bernoulli,
        horizon=12,
        neighbours=_binary_neighbours,
        draw_user=_draw_binary,
        randomizes=True,
    ),
    "lil_ucb_gaussian": LearnerEntry(
        family="bandits",
        summary="the same from bounded rewards with Gaussian noise",
        source=LIL,
        proof="proved",
        factory=bandits.lil_ucb,
        variant={"report": "gaussian", "rewards": "bounded", "constants": "heuristic"},
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "delta": 1e-3, "failure_prob": 0.1, "reward_low": -1.0, "reward_high": 2.0},
        environment=_gaussian,
        horizon=12,
        neighbours=_bounded_neighbours,
        draw_user=_draw_bounded,
    ),
    # Intervals so narrow that the third sweep may drop an arm.
    "successive_elimination": LearnerEntry(
        family="bandits",
        summary="finds the best arm by dropping those with few wins, from randomized binary rewards",
        source=ELIMINATION,
        proof="proved",
        factory=bandits.successive_elimination,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.3},
        environment=_bernoulli,
        horizon=16,
        neighbours=_binary_neighbours,
        draw_user=_draw_binary,
        randomizes=True,
    ),
    "successive_elimination_bounded": LearnerEntry(
        family="bandits",
        summary="the same from randomized responses of bounded rewards",
        source=ELIMINATION,
        proof="proved",
        factory=bandits.successive_elimination,
        variant={"rewards": "bounded"},
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "failure_prob": 0.1, "reward_low": -1.0, "reward_high": 2.0},
        environment=_gaussian,
        horizon=12,
        neighbours=_bounded_neighbours,
        draw_user=_draw_bounded,
        randomizes=True,
    ),
}

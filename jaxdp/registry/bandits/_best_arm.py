"""Worlds and neighbours for bandits that find the best arm."""

import math

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import bandits
from jaxdp.audit import Users
from jaxdp.core import Environment
from jaxdp.registry.draws import spread

# A user may also hold values that a learner clips; NaN counts as the lowest.
LOW, HIGH = -5.0, 5.0


def bernoulli(num_arms: int) -> Environment:
    return bandits.bernoulli_bandit(spread(0.9, 0.1, num_arms))


def gaussian(num_arms: int) -> Environment:
    return bandits.gaussian_bandit(spread(0.9, 0.1, num_arms), stddev=0.5)


def _one_reward(low: float, high: float, num_arms: int, dtype: type) -> tuple[Users, Users]:
    """Returns users of one round, in which every arm pays the least, or the most."""
    lowest, highest = (Users(np.full((1, num_arms), reward, dtype)) for reward in (low, high))
    return lowest, highest


def binary_neighbours(num_arms: int) -> tuple[Users, Users]:
    return _one_reward(0, 1, num_arms, np.int32)


def bounded_neighbours(num_arms: int) -> tuple[Users, Users]:
    return _one_reward(math.nan, HIGH, num_arms, float)


def draw_bounded(key: jax.Array, num_arms: int) -> Users:
    """Draws a user for whom each arm pays too little, too much, or NaN."""
    choice = jax.random.randint(key, (num_arms,), 0, 3)
    return Users(jnp.asarray([LOW, HIGH, jnp.nan], float)[choice])


REPORTED = "on reports as in Zheng, Cai, Huang, Li & Wang (2020), Appendix B.2"

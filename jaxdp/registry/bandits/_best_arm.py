"""Worlds and users for bandits that find the best arm."""

import jax
import jax.numpy as jnp

from jaxdp import bandits
from jaxdp.audit import UserData
from jaxdp.core import Environment
from jaxdp.registry.bandits._rewards import HIGH, LOW
from jaxdp.registry.draws import spread


def bernoulli(num_arms: int) -> Environment:
    return bandits.bernoulli_bandit(spread(0.9, 0.1, num_arms))


def gaussian(num_arms: int) -> Environment:
    return bandits.gaussian_bandit(spread(0.9, 0.1, num_arms), stddev=0.5)


def draw_bounded(key: jax.Array, num_arms: int) -> UserData:
    """Draws a user with rewards below or above the clipping interval, or NaN."""
    choice = jax.random.randint(key, (num_arms,), 0, 3)
    return UserData(jnp.asarray([LOW, HIGH, jnp.nan], float)[choice])


REPORTED = "on reports as in Zheng, Cai, Huang, Li & Wang (2020), Appendix B.2"

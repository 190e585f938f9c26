"""Worlds, users and neighbours for contextual bandits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.audit import UserData
from jaxdp.bandits import contextual
from jaxdp.core import Environment, default_float
from jaxdp.registry.entries import LearnerEntry

HUGE = 1e30  # far beyond the bounds to which learners clip contexts and rewards; its square overflows in 32-bit floats
# For the first two contexts and rewards of opposite sign, the vectors (x x^T, y x) are as far apart as possible in L2.
CONTEXTS = np.array([[HUGE, 0.0], [0.5 * HUGE, 0.75**0.5 * HUGE], [-0.8, 0.6], [np.nan, 0.0]])


REWARDS = np.array([-HUGE, HUGE, np.nan])


def linear_world(num_arms: int, dim: int) -> Environment:
    """Makes a linear world with contexts on the sphere."""
    return contextual.linear_contexts(num_arms=num_arms, dim=dim)


def context_of(index: Any, num_arms: int, dim: int) -> Any:
    """Returns one of `CONTEXTS` as the context of all arms ([num_arms, dim]), so that all arms are alike."""
    padded = np.pad(CONTEXTS, ((0, 0), (0, dim - 2))).astype(default_float())
    return jnp.broadcast_to(jnp.asarray(padded)[index], (num_arms, dim))


def a_user_is_replaced(num_arms: int, dim: int) -> tuple[UserData, UserData]:
    """Returns two runs of one user each; (x x^T, y x), for context x and reward y, differs as much as possible."""
    return tuple(
        UserData(np.full((1, num_arms), reward), np.asarray(context_of(index, num_arms, dim), float)[None])
        for index, reward in ((0, HUGE), (1, -HUGE))
    )  # pyright: ignore[reportReturnType]


def draw_user(key: jax.Array, num_arms: int, dim: int) -> UserData:
    """Draws a user from `CONTEXTS` and `REWARDS`: all arms have the same context, or each arm its own."""
    key_all, key_each, key_same, key_reward = jax.random.split(key, 4)
    shared = jnp.full(num_arms, jax.random.randint(key_all, (), 0, len(CONTEXTS)))
    different = jax.random.randint(key_each, (num_arms,), 0, len(CONTEXTS))
    index = jnp.where(jax.random.bernoulli(key_same), shared, different)
    padded = jnp.asarray(np.pad(CONTEXTS, ((0, 0), (0, dim - 2))), default_float())
    rewards = jax.random.choice(key_reward, jnp.asarray(REWARDS, default_float()), (num_arms,))
    return UserData(rewards, padded[index])


def entry(summary: str, factory: Any, source: str, **options: Any) -> LearnerEntry:
    """Makes an entry of a contextual bandit; `options` are further fields of the entry, or replace the default ones."""
    fields = {
        "sizes": {"num_arms": 2, "dim": 2, "horizon": 12},
        "environment": linear_world,
        "neighbours": a_user_is_replaced,
        "draw_user": draw_user,
        **options,
    }
    return LearnerEntry(
        family="contextual bandits", summary=summary, factory=factory, source=source, proof="proved", **fields
    )

"""Worlds, users and neighbours for several bandits."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import bandits
from jaxdp.audit import UserData
from jaxdp.core import Environment
from jaxdp.registry.draws import change_answers, either, spread
from jaxdp.registry.entries import LearnerEntry

# Users may have values that a learner clips.
LOW, HIGH = -5.0, 5.0


def bernoulli(num_arms: int) -> Environment:
    return bandits.bernoulli_bandit(spread(0.2, 0.8, num_arms))


def gaussian(num_arms: int) -> Environment:
    return bandits.gaussian_bandit(spread(0.2, 0.8, num_arms), stddev=0.5)


def one_reward_moves(low: float, high: float, num_arms: int, rounds: int, dtype: Any) -> tuple[UserData, UserData]:
    """Returns users of two runs: the first arm pays `low`, and other arms pay `high`.

    In round one of the second run, all arms pay `high`.
    """
    never = np.full((rounds, num_arms), high, dtype)
    never[:, 0] = low
    return change_answers(never, (0, 0), high)


def first_reward_moves(num_arms: int, plays_of_each: int = 2) -> tuple[UserData, UserData]:
    """Returns users of two runs: the first arm pays 0 (but 1 in round one of the second run), other arms pay 1.

    Each run has `plays_of_each` * num_arms rounds.
    """
    return one_reward_moves(0, 1, num_arms, plays_of_each * num_arms, np.int32)


def first_arm_stays(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of 18 rounds in which the first arm is often played for several blocks.

    Only the first arm pays: in the first run in all rounds, and in the second run in all rounds except round one.
    """
    always = np.zeros((18, num_arms), np.int32)
    always[:, 0] = 1
    return change_answers(always, (0, 0), 0)


def every_reward_moves(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of one round: all rewards are 0 in the first run, and 1 in the second."""
    nothing, paid = (UserData(np.full((1, num_arms), pay, np.int32)) for pay in (0, 1))
    return nothing, paid


def every_reward_leaves(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of one round: in the first run all rewards are NaN, in the second above the clipping interval."""
    missing, far = (UserData(np.full((1, num_arms), pay, float)) for pay in (np.nan, HIGH))
    return missing, far


def draw_binary(key: jax.Array, num_arms: int) -> UserData:
    return UserData(either(key, 0, 1, num_arms, jnp.int32))


def draw_any(key: jax.Array, num_arms: int) -> UserData:
    """Draws rewards below or above the clipping interval, or NaN."""
    return UserData(jax.random.choice(key, jnp.asarray([LOW, HIGH, np.nan]), (num_arms,)))


bandit_entry = partial(LearnerEntry, family="bandits", proof="proved")
ON_REPORTS = "on reports as by Zheng, Cai, Huang, Li & Wang (2020), Appendix B.1"

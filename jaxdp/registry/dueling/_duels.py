"""Worlds, users and neighbours for several dueling bandits."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import dueling
from jaxdp.audit import UserData, feedback_of_pair
from jaxdp.core import Environment
from jaxdp.preferences import lower_bound_matrix
from jaxdp.registry.draws import change_answers
from jaxdp.registry.entries import LearnerEntry


def ranked_arms(num_arms: int) -> Environment:
    """Makes a world in which the second arm is almost as good as the first, and the others are much worse."""
    return dueling.utility_duels([1.0, 0.5, *[-2.0] * (num_arms - 2)])


def one_good_arm(num_arms: int) -> Environment:
    """Makes a world in which the first arm beats every other arm with probability 3/4, and the others are equal."""
    return dueling.matrix_duels(lower_bound_matrix(num_arms))


def draw_duels(key: jax.Array, num_arms: int) -> UserData:
    """Draws a user's answers to all ordered pairs of arms, by fair coins."""
    return UserData(jax.random.bernoulli(key, shape=(num_arms, num_arms)).astype(jnp.int32))


def every_duel_moves(num_arms: int) -> tuple[UserData, UserData]:
    """Returns users of one round for two runs: the left arm loses all duels in the first, and wins all in the other."""
    lost, won = (UserData(np.full((1, num_arms, num_arms), won, np.int32)) for won in (0, 1))
    return lost, won


duel_entry = partial(
    LearnerEntry, family="dueling", proof="proved", draw_user=draw_duels, users_answer=feedback_of_pair
)
SAHA_ASI = "Saha & Asi (2024), Algorithm 1"
PRIVATIZED = 'on privatized responses as in Asi & Saha (2025), "Optimal Rates for Private Stochastic Dueling Bandits"'


def a_user_changes(num_arms: int, rounds: int, user: int) -> tuple[UserData, UserData]:
    """Returns users of two runs, which differ in the user of one round.

    The arm with the lower index wins all duels, except that in the second run it loses all duels of the round with the
    index `user`.
    """
    always = np.tile(np.triu(np.ones((num_arms, num_arms), np.int32)), (rounds, 1, 1))
    return change_answers(always, user, 1 - always[user])

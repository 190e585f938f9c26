"""Worlds, users and neighbours for several learners that predict from experts' advice."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import experts
from jaxdp.audit import UserData, full_information
from jaxdp.core import Environment, default_float
from jaxdp.registry.draws import either, spread
from jaxdp.registry.entries import LearnerEntry

# Losses of users are outside of [0, 1]. A learner clips them to 0 ("no loss") or 1 ("a loss").
LOW, HIGH = -2.0, 3.0


def adaptive(num_experts: int) -> Environment:
    """Makes a world with mean losses from .1 to .9; the expert played last has a mean loss larger by .1."""
    return experts.adaptive_losses(spread(0.1, 0.9, num_experts), penalty=0.1)


def stochastic(num_experts: int) -> Environment:
    """Makes a world with losses from fixed distributions."""
    return experts.stochastic_losses(spread(0.1, 0.9, num_experts))


def shifting(num_experts: int, horizon: int) -> Environment:
    """Makes a world in which the best expert changes once."""
    return experts.shifting_losses(num_experts=num_experts, horizon=horizon, num_shifts=1, gap=0.4)


def punishing(num_experts: int) -> Environment:
    """Makes a world in which the expert played in the previous round has a loss of 1."""
    return experts.punish_repeats(num_experts=num_experts, memory=1)


def all_losses_move(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of one round: all losses are below 0 in the first run, and above 1 in the second."""
    return UserData(np.full((1, num_experts), LOW)), UserData(np.full((1, num_experts), HIGH))


def draw_losses(key: jax.Array, num_experts: int) -> UserData:
    """Draws a user with losses below 0 or above 1."""
    return UserData(either(key, LOW, HIGH, num_experts, float))


def draw_any_losses(key: jax.Array, num_experts: int) -> UserData:
    """Draws a user with losses below 0, above 1, or NaN."""
    any_of = jnp.asarray([LOW, HIGH, np.nan], default_float())
    return UserData(jax.random.choice(key, any_of, (num_experts,)))


def first_or_others(num_experts: int, *who: str) -> np.ndarray:
    """Returns losses [len(who), num_experts]: in each round the experts that `who` names have a loss above 1.

    Names are "first", "others" (all except the first), "all" and "none". Losses of other experts are below 0.
    """
    first = np.arange(num_experts) == 0
    rows = {"first": first, "others": ~first, "all": first | True, "none": first & False}
    return np.where([rows[name] for name in who], HIGH, LOW)


def loss_moves(num_experts: int, round_: int, *others: str) -> tuple[UserData, UserData]:
    """Returns users of two runs of len(others) + 1 rounds, who differ in the round with index `round_`.

    In that round only the first expert has a loss in the first run, and only the other experts have a loss in the
    second run. In each of the other rounds, `others` names the experts with a loss: "first", "others" (all except the
    first), "all" or "none".
    """
    before, after = others[:round_], others[round_:]
    one, other = (first_or_others(num_experts, *before, who, *after) for who in ("first", "others"))
    return UserData(one), UserData(other)


def the_first_loss_decides(num_experts: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of three rounds, who differ in the first round; only this round has losses."""
    return loss_moves(num_experts, 0, "none", "none")


def a_loss_of_a_long_run(num_experts: int, horizon: int) -> tuple[UserData, UserData]:
    """Returns users of two runs of `horizon` rounds, who differ in the first round; only this round has losses."""
    return loss_moves(num_experts, 0, *["none"] * (horizon - 1))


expert_entry = partial(
    LearnerEntry, family="experts", proof="proved", draw_user=draw_any_losses, users_answer=full_information
)
TRACKING = 'Asi, Raman & Saha (2025), {}, "Tracking the Best Expert Privately", corrected'

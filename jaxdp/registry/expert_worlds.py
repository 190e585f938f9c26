"""Worlds and neighbouring users for learners that predict from experts."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import experts
from jaxdp.audit import Users
from jaxdp.core import Environment, default_float
from jaxdp.registry.draws import either, spread

# Losses beyond the [0, 1] to which a learner clips them are a user's to hold, too.
LOW, HIGH = -2.0, 3.0


def adaptive(num_experts: int) -> Environment:
    """Mean losses from .1 to .9; the expert that was played just before loses more."""
    return experts.adaptive_losses(spread(0.1, 0.9, num_experts), penalty=0.1)


def stochastic(num_experts: int) -> Environment:
    """Losses from fixed laws."""
    return experts.stochastic_losses(spread(0.1, 0.9, num_experts))


def shifting(num_experts: int, horizon: int) -> Environment:
    """Another expert becomes the best once."""
    return experts.shifting_losses(num_experts=num_experts, horizon=horizon, num_shifts=1, gap=0.4)


def punishing(num_experts: int) -> Environment:
    """The expert that was played in the round before has a loss of 1."""
    return experts.punish_repeats(num_experts=num_experts, memory=1)


def all_losses_move(num_experts: int) -> tuple[Users, Users]:
    """One round."""
    return Users(np.full((1, num_experts), LOW)), Users(np.full((1, num_experts), HIGH))


def draw_losses(key: jax.Array, num_experts: int) -> Users:
    """A user whose losses are extreme, each to either side."""
    return Users(either(key, LOW, HIGH, num_experts, float))


def draw_any_losses(key: jax.Array, num_experts: int) -> Users:
    """Losses too small, too large, or none."""
    any_of = jnp.asarray([LOW, HIGH, np.nan], default_float())
    return Users(jax.random.choice(key, any_of, (num_experts,)))


def first_or_others(num_experts: int, *who: str) -> np.ndarray:
    """Losses of the first expert, of all "others", of "all" or of "none", a round each."""
    first = np.arange(num_experts) == 0
    rows = {"first": first, "others": ~first, "all": first | True, "none": first & False}
    return np.where([rows[each] for each in who], HIGH, LOW)


def blame_moves(num_experts: int, round_: int, *others: str) -> tuple[Users, Users]:
    """In one round the first expert has a loss, and no other; or all others have one. Other rounds are as told."""
    told = list(others)
    one, other = (first_or_others(num_experts, *told[:round_], who, *told[round_:]) for who in ("first", "others"))
    return Users(one), Users(other)


def the_first_loss_decides(num_experts: int) -> tuple[Users, Users]:
    """All totals of later batches have what the first round's losses are."""
    return blame_moves(num_experts, 0, "none", "none")


def the_first_loss_decides_all(num_experts: int, horizon: int) -> tuple[Users, Users]:
    """In every round to the horizon."""
    return blame_moves(num_experts, 0, *["none"] * (horizon - 1))


def the_first_batch_decides(num_experts: int) -> tuple[Users, Users]:
    """The same for batches of two rounds, of which the second has no losses."""
    return blame_moves(num_experts, 0, "none", "none", "none")


def the_first_of_a_batch_decides(num_experts: int) -> tuple[Users, Users]:
    """The same, and the first expert has the other losses of the first batch: it is drawn rarely."""
    return blame_moves(num_experts, 0, "first", "none", "none")


def a_batch_of_blame(num_experts: int, batch: int) -> tuple[Users, Users]:
    """The first round of a batch, in the others of which all but the first expert have losses."""
    return blame_moves(num_experts, 0, *["others"] * (batch - 1))


def all_in_one_block(num_experts: int) -> tuple[Users, Users]:
    """The first expert has the losses of rounds 2 and 3, which are a block; or all have had one there."""
    return blame_moves(num_experts, 1, "first", "first")


def a_question_and_a_block(num_experts: int) -> tuple[Users, Users]:
    """The same, and in the round that moves the expert that is played is much worse than another, or better."""
    return blame_moves(num_experts, 1, "none", "first")


def given_up_late(num_experts: int) -> tuple[Users, Users]:
    """The first of losses that all but the first expert have; then rounds of none, and losses that end anyone's time.

    Another expert than the first, who outlasts the rounds without losses, tells the noise of the threshold. Where it is
    given up, and not for the first expert, the selection tells all it can.
    """
    return blame_moves(num_experts, 0, *["others"] * 3, *["none"] * 3, *["all"] * 4)


def blamed_and_drawn_again(num_experts: int) -> tuple[Users, Users]:
    """The first round's losses end the first expert's time, or do not, and count in the selection thereafter."""
    return blame_moves(num_experts, 0, "all", "first", "first")


# ---- of second points ------------------------------------------------------------------------------------------------
def a_loss_of_a_long_run(num_experts: int, horizon: int) -> tuple[Users, Users]:
    """The first loss of as many rounds as there are, of which the others have none."""
    return blame_moves(num_experts, 0, *["none"] * (horizon - 1))


def batches_of_blame(num_experts: int, horizon: int) -> tuple[Users, Users]:
    """The first loss, where all others are of all but the first expert, to the horizon."""
    return blame_moves(num_experts, 0, *["others"] * (horizon - 1))


def the_first_of_batches_decides(num_experts: int, horizon: int) -> tuple[Users, Users]:
    """The first expert has two losses in the first batch, of which one moves, and there are none later."""
    return blame_moves(num_experts, 0, "first", *["none"] * (horizon - 2))


def four_blocks(num_experts: int) -> tuple[Users, Users]:
    """The losses of rounds 2 and 3 as in one block, then a block of four rounds and most of one of eight."""
    return blame_moves(num_experts, 1, "first", "first", *["none"] * 9)


def an_epoch_and_more(num_experts: int) -> tuple[Users, Users]:
    """A question and a block of the first epoch, and rounds enough for others, as after a restart."""
    return blame_moves(num_experts, 1, "none", "first", *["none"] * 3, *["first"] * 3, *["none"] * 3)


def given_up_until_the_cap(num_experts: int, horizon: int) -> tuple[Users, Users]:
    """As `given_up_late`; then losses of all experts, which end anyone's time as often as that may be, and go on."""
    return blame_moves(num_experts, 0, *["others"] * 3, *["none"] * 3, *["all"] * (horizon - 7))


def drawn_until_the_cap(num_experts: int, horizon: int) -> tuple[Users, Users]:
    """As `blamed_and_drawn_again`; then losses of all experts, to the horizon."""
    return blame_moves(num_experts, 0, "all", "first", "first", *["all"] * (horizon - 4))

"""Prediction from experts' advice."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import experts
from jaxdp.audit import Users, whole
from jaxdp.core import Environment, default_float
from jaxdp.experts import classes
from jaxdp.registry.draws import either, spread
from jaxdp.registry.entries import LearnerEntry
from jaxdp.registry.expert_laws import (
    lazy_weights_law,
    limited_updates_law,
    limited_updates_oblivious_law,
    sampled_shares_law,
    svt_lazy_law,
    svt_restarts_law,
)

# Losses beyond the [0, 1] to which a learner clips them are a user's to hold, too.
LOW, HIGH = -2.0, 3.0


def _adaptive(num_experts: int) -> Environment:
    return experts.adaptive_losses(spread(0.1, 0.9, num_experts), penalty=0.1)


def _stochastic(num_experts: int) -> Environment:
    return experts.stochastic_losses(spread(0.1, 0.9, num_experts))


def _shifting(num_experts: int, horizon: int) -> Environment:
    return experts.shifting_losses(num_experts=num_experts, horizon=horizon, num_shifts=1, gap=0.4)


def _punishing(num_experts: int) -> Environment:
    return experts.punish_repeats(num_experts=num_experts, memory=1)


def _all_losses_move(num_experts: int) -> tuple[Users, Users]:
    """One round."""
    return Users(np.full((1, num_experts), LOW)), Users(np.full((1, num_experts), HIGH))


def _draw_losses(key: jax.Array, num_experts: int) -> Users:
    return Users(either(key, LOW, HIGH, num_experts, float))


def _draw_any_losses(key: jax.Array, num_experts: int) -> Users:
    """Losses too small, too large, or none."""
    any_of = jnp.asarray([LOW, HIGH, np.nan], default_float())
    return Users(jax.random.choice(key, any_of, (num_experts,)))


def _first_or_others(num_experts: int, *who: str) -> np.ndarray:
    """Losses of the first expert, of all "others", of "all" or of "none", a round each."""
    first = np.arange(num_experts) == 0
    rows = {"first": first, "others": ~first, "all": first | True, "none": first & False}
    return np.where([rows[each] for each in who], HIGH, LOW)


def _blame_moves(num_experts: int, round_: int, *others: str) -> tuple[Users, Users]:
    """In one round the first expert has a loss, and no other; or all others have one. Other rounds are as told."""
    told = list(others)
    one, other = (_first_or_others(num_experts, *told[:round_], who, *told[round_:]) for who in ("first", "others"))
    return Users(one), Users(other)


def _the_first_loss_decides(num_experts: int) -> tuple[Users, Users]:
    """All totals of later batches have what the first round's losses are."""
    return _blame_moves(num_experts, 0, "none", "none")


def _the_first_loss_decides_all(num_experts: int, horizon: int) -> tuple[Users, Users]:
    """In every round to the horizon."""
    return _blame_moves(num_experts, 0, *["none"] * (horizon - 1))


def _the_first_batch_decides(num_experts: int) -> tuple[Users, Users]:
    """The same for batches of two rounds, of which the second has no losses."""
    return _blame_moves(num_experts, 0, "none", "none", "none")


def _a_batch_of_blame(num_experts: int) -> tuple[Users, Users]:
    """The first of the two rounds of a batch, in the other of which the first expert has the loss."""
    return _blame_moves(num_experts, 0, "first")


def _all_in_one_block(num_experts: int) -> tuple[Users, Users]:
    """The first expert has the losses of rounds 2 and 3, which are a block; or all have had one there."""
    return _blame_moves(num_experts, 1, "first", "first")


def _a_question_and_a_block(num_experts: int) -> tuple[Users, Users]:
    """The same, and in the round that moves the expert that is played is much worse than another, or better."""
    return _blame_moves(num_experts, 1, "none", "first")


def _blamed_and_drawn_again(num_experts: int) -> tuple[Users, Users]:
    """The first round's losses end the first expert's time, or do not, and count in the selection thereafter."""
    return _blame_moves(num_experts, 0, "all", "first", "first")


SOURCE = "Freund & Schapire (1997), Hedge; noise by Dwork & Roth (2014), Theorem 3.6, or Balle & Wang (2018), Theorem 8"
LAZY = "Asi, Feldman, Koren & Talwar (2023), private shrinking dartboard, with accounting of its own"
LAZY_SVT = "structure after Asi, Feldman, Koren & Talwar (2023), the realizable regime, with accounting of its own"
TRACKING = 'Asi, Raman & Saha (2025), {}, "Tracking the Best Expert Privately", corrected'
BATCHES = "McSherry & Talwar (2007), the exponential mechanism, in batches of rounds"

COUNTED = "Hedge on noisy prefix sums after Agarwal & Singh (2017), with the square-root Toeplitz counter"

EXPERTS = {
    "exponential_weights": LearnerEntry(
        family="experts",
        summary="plays experts with odds exponential in their reported losses, each report with Laplace noise",
        source=SOURCE,
        proof="proved",
        factory=experts.exponential_weights,
        sizes={"num_experts": 5, "horizon": 30},
        values={"epsilon": 1.0},
        environment=_adaptive,
        neighbours=_all_losses_move,
        draw_user=_draw_losses,
        users_answer=whole,
    ),
    "exponential_weights_gaussian": LearnerEntry(
        family="experts",
        summary="the same with Gaussian noise",
        source=SOURCE,
        proof="proved",
        factory=experts.exponential_weights,
        variant={"noise": "gaussian"},
        sizes={"num_experts": 5, "horizon": 30},
        values={"epsilon": 1.0, "delta": 1e-3},
        environment=_stochastic,
        neighbours=_all_losses_move,
        draw_user=_draw_losses,
        users_answer=whole,
    ),
    # Fake switches after every round: so few rounds leave no room for others.
    "lazy_weights": LearnerEntry(
        family="experts",
        summary="keeps an expert drawn by exponential weights as long as their law permits",
        source=LAZY,
        proof="proved",
        factory=experts.lazy_weights,
        sizes={"num_experts": 2, "horizon": 4},
        values={"epsilon": 4.0, "delta": 1e-3},
        environment=_punishing,
        neighbours=_the_first_loss_decides,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
        may_claim_less=True,
        law=lazy_weights_law,
    ),
    # Two batches of two rounds, between which one fake switch in three, and one resample at most.
    "lazy_weights_switching": LearnerEntry(
        family="experts",
        summary="the same with sequences of experts that switch once, by pure accounting",
        source=f"{LAZY}; sequences of Asi, Raman & Saha (2025), Theorem 4.1",
        proof="proved",
        factory=experts.lazy_weights,
        variant={"sequences": classes.switching(num_switches=1), "accounting": "pure"},
        sizes={"num_experts": 2, "horizon": 4},
        values={"epsilon": 2.0},
        environment=_shifting,
        neighbours=_a_batch_of_blame,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
        may_claim_less=True,
        law=lazy_weights_law,
    ),
    "lazy_weights_markov": LearnerEntry(
        family="experts",
        summary="the same with sequences that switch at a rate",
        source=f"{LAZY}; sequences of Herbster & Warmuth (1998), fixed share",
        proof="proved",
        factory=experts.lazy_weights,
        variant={"sequences": classes.markov(switch_rate=0.05)},
        sizes={"num_experts": 2, "horizon": 4},
        values={"epsilon": 4.0, "delta": 1e-3},
        environment=_shifting,
        neighbours=_the_first_loss_decides,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
        may_claim_less=True,
        law=lazy_weights_law,
    ),
    "limited_updates": LearnerEntry(
        family="experts",
        summary="plays in each block of rounds the best expert of the last one, half as long, after noise",
        source=TRACKING.format("Algorithm 1"),
        proof="proved",
        factory=experts.limited_updates,
        sizes={"num_experts": 3},
        values={"epsilon": 1.0},
        environment=_adaptive,
        horizon=20,
        neighbours=_all_in_one_block,
        draw_user=_draw_any_losses,
        users_answer=whole,
        law=limited_updates_law,
    ),
    # Totals are of losses that are numbers.
    "limited_updates_binary": LearnerEntry(
        family="experts",
        summary="the same for losses of 0 or 1, by counts too",
        source=TRACKING.format("Algorithm 1"),
        proof="proved",
        factory=experts.limited_updates,
        variant={"losses": "binary"},
        sizes={"num_experts": 3},
        values={"epsilon": 0.5},
        environment=_stochastic,
        horizon=12,
        neighbours=_all_in_one_block,
        draw_user=_draw_losses,
        users_answer=whole,
        law=limited_updates_law,
    ),
    "limited_updates_oblivious": LearnerEntry(
        family="experts",
        summary="draws an expert for each batch of rounds by the exponential mechanism on all earlier losses",
        source=BATCHES,
        proof="proved",
        factory=experts.limited_updates_oblivious,
        sizes={"num_experts": 3, "horizon": 5},
        values={"epsilon": 1.5, "batch": 2},
        environment=_shifting,
        neighbours=_the_first_batch_decides,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
        law=limited_updates_oblivious_law,
    ),
    "limited_updates_oblivious_zcdp": LearnerEntry(
        family="experts",
        summary="the same by zero-concentrated accounting",
        source=BATCHES,
        proof="proved",
        factory=experts.limited_updates_oblivious,
        variant={"accounting": "zcdp"},
        sizes={"num_experts": 3, "horizon": 5},
        values={"epsilon": 2.0, "delta": 1e-3, "batch": 2},
        environment=_shifting,
        neighbours=_the_first_batch_decides,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
        law=limited_updates_oblivious_law,
    ),
    # A margin so low that epochs of a few rounds end. A question every three rounds: each window has all of these, and
    # may move by as much as is declared.
    "svt_restarts": LearnerEntry(
        family="experts",
        summary="limited updates that begin anew where the sparse vector technique finds that losses have shifted",
        source=TRACKING.format("Algorithm 2"),
        proof="proved",
        factory=experts.svt_restarts,
        variant={"check_every": 3},
        sizes={"num_experts": 2, "horizon": 12},
        values={"epsilon": 1.0, "failure_prob": 0.5, "margin": -6.0},
        environment=_shifting,
        neighbours=_a_question_and_a_block,
        draw_user=_draw_any_losses,
        users_answer=whole,
        law=svt_restarts_law,
    ),
    "svt_lazy": LearnerEntry(
        family="experts",
        summary="draws another expert by all losses where the sparse vector technique finds too many of its own",
        source=LAZY_SVT,
        proof="proved",
        factory=experts.svt_lazy,
        sizes={"num_experts": 2, "horizon": 8},
        values={"epsilon": 4.0, "max_switches": 1, "threshold": 0.0},
        environment=_shifting,
        neighbours=_blamed_and_drawn_again,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
        law=svt_lazy_law,
    ),
    "svt_lazy_zcdp": LearnerEntry(
        family="experts",
        summary="the same by zero-concentrated accounting",
        source=LAZY_SVT,
        proof="proved",
        factory=experts.svt_lazy,
        variant={"accounting": "zcdp"},
        sizes={"num_experts": 2, "horizon": 8},
        values={"epsilon": 2.0, "delta": 1e-3, "max_switches": 1, "threshold": 0.0},
        environment=_shifting,
        neighbours=_blamed_and_drawn_again,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
        law=svt_lazy_law,
    ),
    "counter_weights": LearnerEntry(
        family="experts",
        summary="exponential weights on losses that one continual counter has made noisy",
        source=COUNTED,
        proof="proved",
        factory=experts.counter_weights,
        sizes={"num_experts": 2, "horizon": 6},
        values={"epsilon": 1.0, "delta": 1e-3},
        environment=_adaptive,
        neighbours=_all_losses_move,
        draw_user=_draw_any_losses,
        users_answer=whole,
    ),
    "counter_weights_switching": LearnerEntry(
        family="experts",
        summary="the same over sequences of experts that switch once",
        source=f"{COUNTED}; sequences of Asi, Raman & Saha (2025), Theorem 4.1",
        proof="proved",
        factory=experts.counter_weights,
        variant={"sequences": classes.switching(num_switches=1)},
        sizes={"num_experts": 3, "horizon": 6},
        values={"epsilon": 0.5, "delta": 1e-3},
        environment=_shifting,
        neighbours=_all_losses_move,
        draw_user=_draw_any_losses,
        users_answer=whole,
    ),
    "mirror_descent": LearnerEntry(
        family="experts",
        summary="draws each play by weights that follow shifts, in the clear; sampling alone hides the losses",
        source=TRACKING.format("Algorithm 3"),
        proof="proved",
        factory=experts.mirror_descent,
        variant={"num_switches": 1},
        sizes={"num_experts": 2, "horizon": 6},
        values={"epsilon": 4.0, "delta": 1e-3},
        environment=_punishing,
        neighbours=_the_first_loss_decides_all,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
        law=sampled_shares_law,
    ),
    "mirror_descent_clipped": LearnerEntry(
        family="experts",
        summary="the same by weights that are all kept above a floor",
        source=TRACKING.format("Algorithm 3"),
        proof="proved",
        factory=experts.mirror_descent,
        variant={"num_switches": 1, "mixing": "clipped"},
        sizes={"num_experts": 2, "horizon": 6},
        values={"epsilon": 4.0, "delta": 1e-3},
        environment=_punishing,
        neighbours=_the_first_loss_decides_all,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
        law=sampled_shares_law,
    ),
    "mirror_descent_noisy_losses": LearnerEntry(
        family="experts",
        summary="mirror descent on losses to each of which noise is added",
        source=TRACKING.format("Algorithm 3"),
        proof="proved",
        factory=experts.mirror_descent,
        variant={"num_switches": 1, "form": "noisy_losses", "noise": "laplace"},
        sizes={"num_experts": 2, "horizon": 6},
        values={"epsilon": 1.0},
        environment=_shifting,
        neighbours=_all_losses_move,
        draw_user=_draw_any_losses,
        users_answer=whole,
    ),
    "mirror_descent_intervals": LearnerEntry(
        family="experts",
        summary="the same, with one learner for each length of intervals, of which the best is tracked",
        source=TRACKING.format("Theorem 5.2"),
        proof="proved",
        factory=experts.mirror_descent,
        variant={"num_switches": 1, "form": "intervals"},
        sizes={"num_experts": 2, "horizon": 6},
        values={"epsilon": 4.0, "delta": 1e-3},
        environment=_shifting,
        neighbours=_the_first_loss_decides,
        draw_user=_draw_any_losses,
        users_answer=whole,
        draws_in_update=True,
    ),
    "hedge": LearnerEntry(
        family="experts",
        summary="exponential weights on losses in the clear",
        source="Freund & Schapire (1997)",
        proof="none",
        factory=experts.hedge,
        sizes={"num_experts": 3, "horizon": 6},
        values={"learning_rate": 0.5},
        environment=_stochastic,
        neighbours=_all_losses_move,
        draw_user=_draw_any_losses,
        users_answer=whole,
    ),
    "fixed_share": LearnerEntry(
        family="experts",
        summary="the same, with a share of every weight given to all experts, so that shifts are followed",
        source="Herbster & Warmuth (1998)",
        proof="none",
        factory=experts.fixed_share,
        variant={"num_switches": 1},
        sizes={"num_experts": 3, "horizon": 6},
        values={"learning_rate": 0.5},
        environment=_shifting,
        neighbours=_all_losses_move,
        draw_user=_draw_any_losses,
        users_answer=whole,
    ),
}

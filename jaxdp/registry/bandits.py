"""Bandits."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import bandits
from jaxdp.audit import Users
from jaxdp.core import Environment
from jaxdp.registry.draws import either, spread
from jaxdp.registry.entries import LearnerEntry
from jaxdp.registry.laws import explore_then_commit_law
from jaxdp.registry.second import Second

# Values beyond what a learner clips to are a user's to hold, too.
LOW, HIGH = -5.0, 5.0


def _bernoulli(num_arms: int) -> Environment:
    return bandits.bernoulli_bandit(spread(0.2, 0.8, num_arms))


def _gaussian(num_arms: int) -> Environment:
    return bandits.gaussian_bandit(spread(0.2, 0.8, num_arms), stddev=0.5)


def _one_reward_moves(low: float, high: float, num_arms: int, rounds: int, dtype: Any) -> tuple[Users, Users]:
    """All arms in turn: the first arm pays nothing, or once; the others pay always."""
    never = np.full((rounds, num_arms), high, dtype)
    never[:, 0] = low
    once = never.copy()
    once[0, 0] = high
    return Users(never), Users(once)


def _binary_neighbours(num_arms: int, explore_rounds: int) -> tuple[Users, Users]:
    return _one_reward_moves(0, 1, num_arms, explore_rounds, np.int32)


def _bounded_neighbours(num_arms: int, explore_rounds: int) -> tuple[Users, Users]:
    return _one_reward_moves(LOW, HIGH, num_arms, explore_rounds, float)


def _every_reward_moves(num_arms: int) -> tuple[Users, Users]:
    """One round, in which every arm pays nothing, or pays."""
    nothing, paid = (Users(np.full((1, num_arms), pay, np.int32)) for pay in (0, 1))
    return nothing, paid


def _every_reward_leaves(num_arms: int) -> tuple[Users, Users]:
    """One round, in which every reward is no number, or beyond what is clipped to: such users are private, too."""
    missing, far = (Users(np.full((1, num_arms), pay, float)) for pay in (np.nan, HIGH))
    return missing, far


def _first_reward_moves(num_arms: int) -> tuple[Users, Users]:
    """Arms pay always, but for the first user, who may pay nothing."""
    return _one_reward_moves(0, 1, num_arms, 2 * num_arms, np.int32)


def _an_epoch_moves(num_arms: int) -> tuple[Users, Users]:
    """The same over a first epoch in which each arm has four turns."""
    return _one_reward_moves(0, 1, num_arms, 4 * num_arms, np.int32)


def _beyond_exploring(low: float, high: float, num_arms: int, explore_rounds: int, dtype: Any) -> tuple[Users, Users]:
    """As many rounds after exploring as before."""
    return _one_reward_moves(low, high, num_arms, 2 * explore_rounds, dtype)


def _binary_beyond(num_arms: int, explore_rounds: int) -> tuple[Users, Users]:
    return _beyond_exploring(0, 1, num_arms, explore_rounds, np.int32)


def _bounded_beyond(num_arms: int, explore_rounds: int) -> tuple[Users, Users]:
    return _beyond_exploring(LOW, HIGH, num_arms, explore_rounds, float)


def _the_first_arm_stays(num_arms: int) -> tuple[Users, Users]:
    """The first arm alone pays, but once perhaps, so that it is played through several blocks."""
    always = np.zeros((18, num_arms), np.int32)
    always[:, 0] = 1
    once = always.copy()
    once[0, 0] = 0
    return Users(always), Users(once)


def _three_epochs(num_arms: int) -> tuple[Users, Users]:
    """The rounds of `_an_epoch_moves`, and as many of a later epoch."""
    return _one_reward_moves(0, 1, num_arms, 8 * num_arms, np.int32)


def _draw_binary(key: jax.Array, num_arms: int) -> Users:
    return Users(either(key, 0, 1, num_arms, jnp.int32))


def _draw_any(key: jax.Array, num_arms: int) -> Users:
    """Rewards beyond both ends, and some that are no numbers."""
    return Users(jax.random.choice(key, jnp.asarray([LOW, HIGH, np.nan]), (num_arms,)))


ON_REPORTS = "on reports as by Zheng, Cai, Huang, Li & Wang (2020), Appendix B.1"
SOURCE = "standard; noise by Dwork & Roth (2014), Theorem 3.6"

BANDITS = {
    "explore_then_commit": LearnerEntry(
        family="bandits",
        summary="plays binary arms in turn, then the one with the largest Laplace-noised total",
        source=SOURCE,
        proof="proved",
        factory=bandits.explore_then_commit,
        draws_in_update=True,
        sizes={"num_arms": 3, "explore_rounds": 12},
        values={"epsilon": 1.0},
        environment=_bernoulli,
        horizon=70,
        neighbours=_binary_neighbours,
        draw_user=_draw_binary,
        law=explore_then_commit_law,
        second=Second({"explore_rounds": 6}, neighbours=_binary_beyond),
    ),
    "explore_then_commit_bounded": LearnerEntry(
        family="bandits",
        summary="the same for rewards that are clipped to an interval",
        source=SOURCE,
        proof="proved",
        factory=bandits.explore_then_commit,
        draws_in_update=True,
        variant={"rewards": "bounded"},
        sizes={"num_arms": 3, "explore_rounds": 12},
        values={"epsilon": 1.0, "reward_low": -1.0, "reward_high": 2.0},
        environment=_gaussian,
        horizon=70,
        neighbours=_bounded_neighbours,
        draw_user=_draw_any,
        law=explore_then_commit_law,
        second=Second({"explore_rounds": 6}, neighbours=_bounded_beyond),
    ),
    "tsallis_inf": LearnerEntry(
        family="bandits",
        summary="follows the leader regularised by Tsallis entropy, by randomized rewards",
        source=f"Zimmert & Seldin (2021), Algorithms 1 and 2; {ON_REPORTS}",
        proof="proved",
        factory=bandits.tsallis_inf,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0},
        environment=_bernoulli,
        horizon=12,
        neighbours=_every_reward_moves,
        draw_user=_draw_binary,
        randomizes=True,
    ),
    "tsallis_inf_gaussian": LearnerEntry(
        family="bandits",
        summary="the same by clipped rewards with Gaussian noise, with losses of reduced variance",
        source=f"Zimmert & Seldin (2021), Algorithms 1 and 2; {ON_REPORTS}",
        proof="proved",
        factory=bandits.tsallis_inf,
        variant={"report": "gaussian", "estimator": "rv", "rewards": "bounded"},
        sizes={"num_arms": 3, "horizon": 10},
        values={"epsilon": 1.0, "delta": 1e-3, "reward_low": -1.0, "reward_high": 2.0},
        environment=_gaussian,
        neighbours=_every_reward_leaves,
        draw_user=_draw_any,
    ),
    "ucb": LearnerEntry(
        family="bandits",
        summary="plays the arm with the largest upper bound, by randomized rewards that were clipped",
        source=f"Auer, Cesa-Bianchi & Fischer (2002), UCB1; {ON_REPORTS}",
        proof="proved",
        factory=bandits.ucb,
        variant={"rewards": "bounded"},
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "reward_low": -1.0, "reward_high": 2.0},
        environment=_gaussian,
        horizon=12,
        neighbours=_every_reward_leaves,
        draw_user=_draw_any,
        randomizes=True,
    ),
    "thompson": LearnerEntry(
        family="bandits",
        summary="plays the arm that is the best in a draw from the posterior, by randomized rewards",
        source="Thompson (1933); Agrawal & Goyal (2012), Algorithm 1, by randomized responses of Warner (1965)",
        proof="proved",
        factory=bandits.thompson,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0},
        environment=_bernoulli,
        horizon=8,
        neighbours=_every_reward_moves,
        draw_user=_draw_binary,
        randomizes=True,
    ),
    "exp3_laplace": LearnerEntry(
        family="bandits",
        summary="draws arms by exponential weights, by clipped rewards with Laplace noise",
        source="Auer et al. (2002), Exp3; Tossou & Dimitrakakis (2017)",
        proof="proved",
        factory=bandits.exp3,
        variant={"report": "laplace", "rewards": "bounded"},
        sizes={"num_arms": 3, "horizon": 8},
        values={"epsilon": 1.0, "reward_low": -1.0, "reward_high": 2.0},
        environment=_gaussian,
        neighbours=_every_reward_leaves,
        draw_user=_draw_any,
    ),
    "successive_elimination_central": LearnerEntry(
        family="bandits",
        summary="plays arms in epochs, after which those with a low Laplace-noised mean are dropped",
        source="Sajed & Sheffet (2019), DP successive elimination",
        proof="proved",
        factory=bandits.successive_elimination_central,
        sizes={"num_arms": 3},  # an arm far behind two others stays by its own noise; behind one, by either's
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.016},
        environment=_bernoulli,
        horizon=40,
        neighbours=_an_epoch_moves,
        draw_user=_draw_binary,
        second=Second(neighbours=_three_epochs),
    ),
    "ucb_central": LearnerEntry(
        family="bandits",
        summary="plays the arm with the largest upper bound, from Laplace-noised totals of doubling blocks",
        source="Auer, Cesa-Bianchi & Fischer (2002), UCB1; Azize & Basu (2022)",
        proof="proved",
        factory=bandits.ucb_central,
        draws_in_update=True,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0},
        environment=_bernoulli,
        horizon=30,
        neighbours=_first_reward_moves,
        draw_user=_draw_binary,
        second=Second(neighbours=_the_first_arm_stays),
    ),
    "ucb_central_tree": LearnerEntry(
        family="bandits",
        summary="the same from continual counters of rewards, one an arm",
        source="Auer, Cesa-Bianchi & Fischer (2002), UCB1; Mishra & Thakurta (2015)",
        proof="proved",
        factory=bandits.ucb_central,
        draws_in_update=True,
        variant={"release": "tree"},
        sizes={"num_arms": 2, "horizon": 10},
        values={"epsilon": 1.0},
        environment=_bernoulli,
        neighbours=_first_reward_moves,
        draw_user=_draw_binary,
        second=Second({"horizon": 24}, neighbours=_the_first_arm_stays),
    ),
}

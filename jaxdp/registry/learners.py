"""Every learner, named once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import bandits, dueling, experts
from jaxdp.audit import Users, by_action, by_pair, whole
from jaxdp.core import Environment, Learner
from jaxdp.preferences import cyclic_matrix, lower_bound_matrix


@dataclass(frozen=True, kw_only=True)
class LearnerEntry:
    """A learner with a tiny problem.

    Attributes:
        summary: one line, what it does.
        values: the grid point that tests use.
        make: () -> Learner.
        environment: () -> Environment that it can play against.
        horizon: rounds of the tiny problem.
        neighbours: users of two runs who differ in one round, between whom the learner is least private, or nearly so:
            what the one user says reaches all that it is used for.
        draw_user: key -> Users of one round, which reaches the extremes of what a user may hold.
        answer: how users answer to an action.
        randomizes: whether reports are randomized responses: at any epsilon one is the outcome, turned or not.
    """

    summary: str
    values: Mapping[str, float]
    make: Callable[[], Learner]
    environment: Callable[[], Environment]
    horizon: int
    neighbours: tuple[Users, Users]
    draw_user: Callable[[jax.Array], Users]
    answer: Callable[..., Any] = by_action
    randomizes: bool = False


def _extremes(low: float, high: float, size: int, dtype: Any) -> Callable[[jax.Array], Users]:
    def draw_user(key: jax.Array) -> Users:
        return Users(jnp.where(jax.random.bernoulli(key, shape=(size,)), high, low).astype(dtype))

    return draw_user


def _one_reward_moves(low: float, high: float, dtype: Any) -> tuple[Users, Users]:
    """Twelve rounds of three arms in turn: the first arm pays nothing, or once; the others pay always."""
    never = np.tile(np.asarray([low, high, high], dtype), (12, 1))
    once = never.copy()
    once[0, 0] = high
    return Users(never), Users(once)


def _all_losses_move(low: float, high: float) -> tuple[Users, Users]:
    """One round of five experts."""
    return Users(np.full((1, 5), float(low))), Users(np.full((1, 5), float(high)))


def _draw_duels(num_arms: int) -> Callable[[jax.Array], Users]:
    def draw_user(key: jax.Array) -> Users:
        return Users(jax.random.bernoulli(key, shape=(num_arms, num_arms)).astype(jnp.int32))

    return draw_user


def _one_duel_moves(num_arms: int, rounds: int) -> tuple[Users, Users]:
    """The first arm wins no duel as the left one, or its first; the others win always."""
    never = np.ones((rounds, num_arms, num_arms), np.int32)
    never[:, 0] = 0
    once = never.copy()
    once[0, 0] = 1
    return Users(never), Users(once)


def _the_first_duel_moves(num_arms: int, rounds: int) -> tuple[Users, Users]:
    """The first user says that the left arm lost, or won. The second arm loses always as the left one, the others win.

    So it is the second arm that is dropped, if any, and where it was the first one's opponent what was won over it is
    taken back: the user's answer is used again.
    """
    lost = np.ones((rounds, num_arms, num_arms), np.int32)
    lost[:, 1] = lost[0] = 0
    won = lost.copy()
    won[0] = 1
    return Users(lost), Users(won)


def _every_duel_moves(num_arms: int) -> tuple[Users, Users]:
    """One round, in which every duel is lost, or won."""
    return tuple(Users(np.full((1, num_arms, num_arms), won, np.int32)) for won in (0, 1))  # pyright: ignore


# Values beyond what a learner clips to are a user's to hold, too.
LEARNERS: dict[str, LearnerEntry] = {
    "explore_then_commit": LearnerEntry(
        summary="plays binary arms in turn, then the one with the largest Laplace-noised total",
        values={"epsilon": 1.0},
        make=lambda: bandits.explore_then_commit(num_arms=3, explore_rounds=12),
        environment=lambda: bandits.bernoulli_bandit([0.2, 0.5, 0.8]),
        horizon=70,
        neighbours=_one_reward_moves(0, 1, np.int32),
        draw_user=_extremes(0, 1, 3, jnp.int32),
    ),
    "explore_then_commit_bounded": LearnerEntry(
        summary="the same for rewards that are clipped to an interval",
        values={"epsilon": 1.0, "low": -1.0, "high": 2.0},
        make=lambda: bandits.explore_then_commit(num_arms=3, explore_rounds=12, rewards="bounded"),
        environment=lambda: bandits.gaussian_bandit([0.2, 0.5, 0.8], stddev=0.5),
        horizon=70,
        neighbours=_one_reward_moves(-5, 5, float),
        draw_user=_extremes(-5, 5, 3, float),
    ),
    "exponential_weights": LearnerEntry(
        summary="plays experts with odds exponential in their reported losses, each report with Laplace noise",
        values={"epsilon": 1.0},
        make=lambda: experts.exponential_weights(num_experts=5, horizon=30),
        environment=lambda: experts.adaptive_losses([0.1, 0.3, 0.5, 0.7, 0.9], penalty=0.1),
        horizon=30,
        neighbours=_all_losses_move(-2, 3),
        draw_user=_extremes(-2, 3, 5, float),
        answer=whole,
    ),
    "exponential_weights_gaussian": LearnerEntry(
        summary="the same with Gaussian noise",
        values={"epsilon": 1.0, "delta": 1e-3},
        make=lambda: experts.exponential_weights(num_experts=5, horizon=30, noise="gaussian"),
        environment=lambda: experts.stochastic_losses([0.1, 0.3, 0.5, 0.7, 0.9]),
        horizon=30,
        neighbours=_all_losses_move(-2, 3),
        draw_user=_extremes(-2, 3, 5, float),
        answer=whole,
    ),
    "ebs_phased": LearnerEntry(
        summary="duels in phases, after which arms with a low Laplace-noised share of wins are dropped",
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.003},
        make=lambda: dueling.ebs_phased(num_arms=3),
        environment=lambda: dueling.utility_duels([1.0, 0.5, -2.0]),
        horizon=50,
        neighbours=_one_duel_moves(3, 9),
        draw_user=_draw_duels(3),
        answer=by_pair,
    ),
    # Leaves alone, and intervals so narrow that the second duel may drop an arm: an outcome is in two leaves soon.
    "ebs_elimination": LearnerEntry(
        summary="duels, after each of which arms are dropped by private counters of wins",
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.01},
        make=lambda: dueling.ebs_elimination(num_arms=3, horizon=24),
        environment=lambda: dueling.utility_duels([1.0, 0.5, -2.0]),
        horizon=24,
        neighbours=_the_first_duel_moves(3, 3),
        draw_user=_draw_duels(3),
        answer=by_pair,
    ),
    # Blocks of four entries above the leaves: the first arm's fourth duel, in round ten, ends the first of them.
    "ebs_elimination_gaussian": LearnerEntry(
        summary="the same with Gaussian noise",
        values={"epsilon": 1.0, "delta": 1e-3, "failure_prob": 0.1},
        make=lambda: dueling.ebs_elimination(num_arms=3, horizon=12, noise="gaussian", arity=4),
        environment=lambda: dueling.utility_duels([1.0, 0.5, -2.0]),
        horizon=12,
        neighbours=_the_first_duel_moves(3, 10),
        draw_user=_draw_duels(3),
        answer=by_pair,
    ),
    "ebs_local": LearnerEntry(
        summary="duels by randomized outcomes, where arms whose interval lies below another's are dropped",
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.2},
        make=lambda: dueling.ebs_local(num_arms=3, horizon=16),
        environment=lambda: dueling.matrix_duels(lower_bound_matrix(3)),
        horizon=16,
        neighbours=_every_duel_moves(3),
        draw_user=_draw_duels(3),
        answer=by_pair,
        randomizes=True,
    ),
    "rucb": LearnerEntry(
        summary="duels the likely champion with its strongest rival, by upper bounds from randomized outcomes",
        values={"epsilon": 1.0},
        make=lambda: dueling.rucb(num_arms=3),
        environment=lambda: dueling.matrix_duels(lower_bound_matrix(3)),
        horizon=12,
        neighbours=_every_duel_moves(3),
        draw_user=_draw_duels(3),
        answer=by_pair,
        randomizes=True,
    ),
    "versatile_sparring": LearnerEntry(
        summary="two Tsallis-INF players draw the arms of a duel, by randomized outcomes",
        values={"epsilon": 1.0},
        make=lambda: dueling.versatile_sparring(num_arms=3),
        environment=lambda: dueling.matrix_duels(cyclic_matrix(3), regret="borda"),
        horizon=12,
        neighbours=_every_duel_moves(3),
        draw_user=_draw_duels(3),
        answer=by_pair,
        randomizes=True,
    ),
    "versatile_sparring_gaussian": LearnerEntry(
        summary="the same by outcomes with Gaussian noise",
        values={"epsilon": 1.0, "delta": 1e-3},
        make=lambda: dueling.versatile_sparring(num_arms=3, report="gaussian", losses="reduced_variance", horizon=10),
        environment=lambda: dueling.switching_duels([lower_bound_matrix(3), lower_bound_matrix(3, 2)], [0, 4]),
        horizon=10,
        neighbours=_every_duel_moves(3),
        draw_user=_draw_duels(3),
        answer=by_pair,
    ),
    "double_thompson": LearnerEntry(
        summary="draws both arms of a duel from posteriors of randomized outcomes",
        values={"epsilon": 1.0},
        make=lambda: dueling.double_thompson(num_arms=3),
        environment=lambda: dueling.matrix_duels(lower_bound_matrix(3)),
        horizon=6,
        neighbours=_every_duel_moves(3),
        draw_user=_draw_duels(3),
        answer=by_pair,
        randomizes=True,
    ),
}

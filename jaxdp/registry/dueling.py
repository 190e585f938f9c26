"""Dueling bandits."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import dueling
from jaxdp.audit import Users, by_pair
from jaxdp.core import Environment
from jaxdp.preferences import cyclic_matrix, lower_bound_matrix
from jaxdp.registry.entries import LearnerEntry
from jaxdp.registry.laws import double_thompson_law, ebs_local_law, rucb_law, versatile_sparring_law
from jaxdp.registry.second import Second


def _ranked(num_arms: int) -> Environment:
    """The second arm is near the first, all others are far."""
    return dueling.utility_duels([1.0, 0.5, *[-2.0] * (num_arms - 2)])


def one_good_arm(num_arms: int) -> Environment:
    """The first arm beats every other with probability 3/4, all others are alike."""
    return dueling.matrix_duels(lower_bound_matrix(num_arms))


def _cyclic(num_arms: int) -> Environment:
    return dueling.matrix_duels(cyclic_matrix(num_arms), regret="borda")


def _switching(num_arms: int, horizon: int) -> Environment:
    """After two fifths of the rounds the last arm is the best."""
    matrices = [lower_bound_matrix(num_arms), lower_bound_matrix(num_arms, num_arms - 1)]
    return dueling.switching_duels(matrices, [0, 2 * horizon // 5])


def draw_duels(key: jax.Array, num_arms: int) -> Users:
    """A user who answers each ordered pair of arms by a fair coin."""
    return Users(jax.random.bernoulli(key, shape=(num_arms, num_arms)).astype(jnp.int32))


def _one_duel_moves(num_arms: int) -> tuple[Users, Users]:
    """All pairs in turn. The first arm wins no duel as the left one, or its first; the others win always."""
    never = np.ones((num_arms**2, num_arms, num_arms), np.int32)
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


def _an_early_drop(num_arms: int) -> tuple[Users, Users]:
    return _the_first_duel_moves(num_arms, num_arms)


def _the_first_block_ends(num_arms: int, arity: int = 2) -> tuple[Users, Users]:
    """Each arm has its turns, until the first one has been the left one `arity` times."""
    return _the_first_duel_moves(num_arms, (arity - 1) * num_arms + 1)


def _later_drops(num_arms: int) -> tuple[Users, Users]:
    return _the_first_duel_moves(num_arms, 16)


def _two_phases(num_arms: int) -> tuple[Users, Users]:
    """The rounds of `_one_duel_moves`, and those of a later phase."""
    first, second = (Users(np.tile(users.answers, (3, 1, 1))) for users in _one_duel_moves(num_arms))
    second.answers[num_arms**2 :, 0] = 0
    return first, second


def _every_duel_moves(num_arms: int) -> tuple[Users, Users]:
    """One round, in which every duel is lost, or won."""
    lost, won = (Users(np.full((1, num_arms, num_arms), won, np.int32)) for won in (0, 1))
    return lost, won


SAHA_ASI = "Saha & Asi (2024), Algorithm 1"
PRIVATIZED = 'on privatized responses as in "Optimal Rates for Private Stochastic Dueling Bandits" (2025)'
SPARRING = (
    "Ailon, Karnin & Joachims (2014), sparring; Saha & Gaillard (2022), with Tsallis-INF (Zimmert & Seldin, 2021); "
    + PRIVATIZED
)

DUELING = {
    "ebs_phased": LearnerEntry(
        family="dueling",
        summary="duels in phases, after which arms with a low Laplace-noised share of wins are dropped",
        source=f"{SAHA_ASI}, in the phased form that mends its analysis",
        proof="proved",
        factory=dueling.ebs_phased,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.003},
        environment=_ranked,
        horizon=50,
        neighbours=_one_duel_moves,
        draw_user=draw_duels,
        users_answer=by_pair,
        second=Second(neighbours=_two_phases),
    ),
    # Leaves alone, and intervals so narrow that the second duel may drop an arm: an outcome is in two leaves soon.
    "ebs_elimination": LearnerEntry(
        family="dueling",
        summary="duels, after each of which arms are dropped by private counters of wins",
        source=SAHA_ASI,
        proof="proved",
        factory=dueling.ebs_elimination,
        sizes={"num_arms": 3, "horizon": 24},
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.01},
        environment=_ranked,
        neighbours=_an_early_drop,
        draw_user=draw_duels,
        users_answer=by_pair,
        second=Second(neighbours=_later_drops),
    ),
    # Blocks of four entries above the leaves: the first arm's fourth duel, in round ten, ends the first of them.
    "ebs_elimination_gaussian": LearnerEntry(
        family="dueling",
        summary="the same with Gaussian noise",
        source=SAHA_ASI,
        proof="proved",
        factory=dueling.ebs_elimination,
        variant={"noise": "gaussian"},
        sizes={"num_arms": 3, "horizon": 12, "arity": 4},
        values={"epsilon": 1.0, "delta": 1e-3, "failure_prob": 0.1},
        environment=_ranked,
        neighbours=_the_first_block_ends,
        draw_user=draw_duels,
        users_answer=by_pair,
        second=Second({"horizon": 16}, neighbours=_later_drops),
    ),
    "ebs_local": LearnerEntry(
        family="dueling",
        summary="duels by randomized outcomes, where arms whose interval lies below another's are dropped",
        source=f"{SAHA_ASI} and Remark 3",
        proof="proved",
        factory=dueling.ebs_local,
        sizes={"num_arms": 3, "horizon": 16},
        values={"epsilon": 1.0, "failure_prob": 0.1, "confidence_multiplier": 0.2},
        environment=one_good_arm,
        neighbours=_every_duel_moves,
        draw_user=draw_duels,
        users_answer=by_pair,
        randomizes=True,
        law=ebs_local_law,
    ),
    "rucb": LearnerEntry(
        family="dueling",
        summary="duels the likely champion with its strongest rival, by upper bounds from randomized outcomes",
        source=f"Zoghi, Whiteson, Munos & de Rijke (2014), Algorithm 1; {PRIVATIZED}",
        proof="proved",
        factory=dueling.rucb,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0},
        environment=one_good_arm,
        horizon=12,
        neighbours=_every_duel_moves,
        draw_user=draw_duels,
        users_answer=by_pair,
        randomizes=True,
        law=rucb_law,
    ),
    "versatile_sparring": LearnerEntry(
        family="dueling",
        summary="two Tsallis-INF players draw the arms of a duel, by randomized outcomes",
        source=SPARRING,
        proof="proved",
        factory=dueling.versatile_sparring,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0},
        environment=_cyclic,
        horizon=12,
        neighbours=_every_duel_moves,
        draw_user=draw_duels,
        users_answer=by_pair,
        randomizes=True,
        law=versatile_sparring_law,
    ),
    "versatile_sparring_gaussian": LearnerEntry(
        family="dueling",
        summary="the same by outcomes with Gaussian noise",
        source=SPARRING,
        proof="proved",
        factory=dueling.versatile_sparring,
        variant={"report": "gaussian", "losses": "reduced_variance"},
        sizes={"num_arms": 3, "horizon": 10},
        values={"epsilon": 1.0, "delta": 1e-3},
        environment=_switching,
        neighbours=_every_duel_moves,
        draw_user=draw_duels,
        users_answer=by_pair,
    ),
    "double_thompson": LearnerEntry(
        family="dueling",
        summary="draws both arms of a duel from posteriors of randomized outcomes",
        source="Wu & Liu (2016), Algorithm 1 (D-TS), by randomized responses of Warner (1965)",
        proof="proved",
        factory=dueling.double_thompson,
        sizes={"num_arms": 3},
        values={"epsilon": 1.0},
        environment=one_good_arm,
        horizon=6,
        neighbours=_every_duel_moves,
        draw_user=draw_duels,
        users_answer=by_pair,
        randomizes=True,
        law=double_thompson_law,
    ),
}

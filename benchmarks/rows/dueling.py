"""Rows of dueling bandits: eight arms, epsilon 1 unless the name says otherwise."""

from functools import partial

import numpy as np

import jaxdp
from benchmarks.peers import numba_duels, numba_ebs
from benchmarks.row import LearnerRow
from jaxdp.dueling import double_thompson, ebs_elimination, matrix_duels, rucb, versatile_sparring
from jaxdp.mechanisms.continual_counting import best_arity
from jaxdp.mechanisms.continual_counting.arity import level_variances

ARMS, EPSILON, EXPLORATION_RATE = 8, 1.0, 0.51
MATRIX = jaxdp.preferences.utility_matrix(np.linspace(2, 0, ARMS))
SMALL = MATRIX.astype(np.float32)
KEEP = 1 / (1 + np.exp(-EPSILON))
SIZES = {"values": {"epsilon": EPSILON}, "lanes": 2112}


def duels(horizon):
    return matrix_duels(MATRIX)


def elimination_peer(horizon, params):
    learner, world = params["learner"], params["environment"]
    arity = best_arity(horizon + ARMS)
    arguments = (
        *(world.preferences.astype(np.float32), world.regrets["pseudo_regret"].astype(np.float32)),
        np.float32(learner.noise.l1_sensitivity / learner.noise.epsilon),
        *(leaf.astype(np.float32) for leaf in (learner.squared_radius, learner.intercepts, learner.slopes)),
        level_variances(arity, len(learner.slopes), True).astype(np.float32),
        *(arity, horizon),
    )
    return lambda regret: numba_ebs.ebs_elimination(*arguments, regret)


def elimination(name, epsilon, *, in_table):
    return LearnerRow(
        title=name,
        learner=lambda horizon: ebs_elimination(num_arms=ARMS, horizon=horizon),
        world=lambda horizon: jaxdp.dueling.utility_duels(np.linspace(1, 0, ARMS)),
        engine="blocks",
        horizon=100_000,
        peers={"Numba": elimination_peer},
        in_table=in_table,
        **{**SIZES, "values": {"epsilon": epsilon}, "lanes": 4 * 264, "tile": 264},
    )


ROWS = [
    elimination("ebs_elimination", EPSILON, in_table=True),
    elimination("ebs_elimination, all arms stay (epsilon 0.02)", 0.02, in_table=False),
    LearnerRow(
        title="rucb",
        learner=lambda horizon: rucb(num_arms=ARMS),
        world=duels,
        horizon=1000,
        peers={"Numba": lambda horizon, params: partial(numba_duels.rucb, SMALL, KEEP, EXPLORATION_RATE, horizon)},
        in_table=True,
        **SIZES,
    ),
    LearnerRow(
        title="double_thompson",
        learner=lambda horizon: double_thompson(num_arms=ARMS),
        world=duels,
        horizon=200,
        peers={
            "Numba": lambda horizon, params: partial(
                numba_duels.double_thompson, SMALL, KEEP, EXPLORATION_RATE, horizon
            )
        },
        in_table=True,
        **SIZES,
    ),
    *(
        LearnerRow(
            title="versatile_sparring" if is_importance else "versatile_sparring, reduced variance",
            learner=lambda horizon, losses=losses: versatile_sparring(num_arms=ARMS, losses=losses),
            world=duels,
            horizon=1000,
            peers={
                "Numba": lambda horizon, params, is_importance=is_importance: partial(
                    numba_duels.versatile_sparring, SMALL, KEEP, is_importance, horizon
                )
            },
            in_table=is_importance,
            **SIZES,
        )
        for losses, is_importance in (("importance", True), ("reduced_variance", False))
    ),
]

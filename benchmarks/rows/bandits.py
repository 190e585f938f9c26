"""Rows of bandits. Rewards are Bernoulli, reports are randomized responses at epsilon 1 unless stated otherwise."""

from functools import partial

import jax.numpy as jnp
import numpy as np

from benchmarks.floors import largest_bound, learner_floor, play_arm, play_arm_block, reciprocal_weights
from benchmarks.peers import numba_bandits, numba_learners, numpy_bandits
from benchmarks.row import LearnerRow
from benchmarks.settings import ARMS, EPSILON, KEEP, MEANS, SMALL
from jaxdp.bandits import (
    adap_klucb,
    bernoulli_bandit,
    explore_then_commit,
    imed_central,
    noisy_argmax,
    pairwise_elimination,
    pairwise_elimination_central,
    successive_elimination_central,
    thompson,
    thompson_central,
    tsallis_inf,
    ucb,
)
from jaxdp.bandits.convex import fkm, linear_losses, two_point
from jaxdp.core import delayed

DIM, DELAY = 10, 100
FEW_MEANS = np.linspace(0.2, 0.8, 8)
LONG = 5000  # rounds of learners with rounds of few nanoseconds: a tile takes as long to start as some hundred rounds
SIZES = {"values": {"epsilon": EPSILON}, "lanes": 2112}
FEW = {"size": len(FEW_MEANS), "state": lambda horizon: jnp.asarray(FEW_MEANS, jnp.float32)}
COMMIT_FLOORS = {
    "rounds": learner_floor(play_arm, keys=1, **FEW),
    "blocks": learner_floor(play_arm_block, keys=2, together=128, **FEW),
}


def bandit(horizon):
    return bernoulli_bandit(MEANS)


def generator():
    return np.random.default_rng(0)


def tsallis_peer(is_importance, is_warm):
    return lambda horizon, params: partial(numba_bandits.tsallis_inf, SMALL, KEEP, is_importance, is_warm, horizon)


def convex_peer(function):
    def peer(horizon, params):
        learner = params["learner"]
        size = 1 / np.tanh(EPSILON / 2)
        return partial(function, DIM, 0.5, float(learner.exploration), float(learner.step), size, horizon)

    return peer


def commit_peer(horizon, params):
    return partial(numba_learners.explore_then_commit, FEW_MEANS.astype(np.float32), EPSILON, horizon // 2, horizon)


def counts(name, learner, means, horizon, tile):
    """Rounds as totals: seconds and memory do not depend on the horizon."""
    return LearnerRow(
        title=f"{name}, horizon {horizon:,}",
        learner=learner,
        world=lambda horizon: bernoulli_bandit(means),
        engine="counts",
        horizon=horizon,
        **{**SIZES, "lanes": 1000, "tile": tile},
    )


ROWS = [
    *(
        LearnerRow(
            title="explore_then_commit",
            learner=lambda horizon: explore_then_commit(num_arms=8, explore_rounds=horizon // 2),
            world=lambda horizon: bernoulli_bandit(FEW_MEANS),
            engine=engine,
            horizon=100_000,
            outcomes=None,
            peers={"Numba": commit_peer},
            floor=COMMIT_FLOORS.get(engine),
            in_table=True,
            **{**SIZES, "lanes": 1024},
        )
        for engine in ("rounds", "blocks", "counts")
    ),
    LearnerRow(
        title="tsallis_inf",
        learner=lambda horizon: tsallis_inf(num_arms=ARMS, estimator="iw"),
        world=bandit,
        horizon=LONG,
        peers={"Numba": tsallis_peer(True, True), "Numba, Newton's steps from 1": tsallis_peer(True, False)},
        scripts={"NumPy": lambda rounds: numpy_bandits.tsallis_inf(generator(), MEANS, KEEP, True, rounds)},
        floor=learner_floor(reciprocal_weights, keys=3, size=ARMS),
        in_table=True,
        **SIZES,
    ),
    LearnerRow(
        title="tsallis_inf, reduced variance",
        learner=lambda horizon: tsallis_inf(num_arms=ARMS, estimator="rv"),
        world=bandit,
        horizon=LONG,
        peers={"Numba": tsallis_peer(False, True)},
        scripts={"NumPy": lambda rounds: numpy_bandits.tsallis_inf(generator(), MEANS, KEEP, False, rounds)},
        **SIZES,
    ),
    LearnerRow(
        title="ucb",
        learner=lambda horizon: ucb(num_arms=ARMS),
        world=bandit,
        horizon=LONG,
        peers={"Numba": lambda horizon, params: partial(numba_bandits.ucb, SMALL, KEEP, 4.0, horizon)},
        scripts={"NumPy": lambda rounds: numpy_bandits.ucb(generator(), MEANS, KEEP, 4.0, rounds)},
        floor=learner_floor(largest_bound, keys=2, size=ARMS),
        in_table=True,
        **SIZES,
    ),
    LearnerRow(
        title=f"ucb, delay {DELAY}",
        learner=lambda horizon: ucb(num_arms=ARMS),
        world=lambda horizon: delayed(bandit(horizon), DELAY),
        horizon=LONG,
        peers={"Numba": lambda horizon, params: partial(numba_bandits.late_ucb, SMALL, KEEP, 4.0, DELAY, horizon)},
        **SIZES,
    ),
    LearnerRow(
        title="thompson",
        learner=lambda horizon: thompson(num_arms=ARMS),
        world=bandit,
        horizon=200,
        peers={"Numba": lambda horizon, params: partial(numba_bandits.thompson, SMALL, KEEP, horizon)},
        scripts={"NumPy": lambda rounds: numpy_bandits.thompson(generator(), MEANS, KEEP, rounds)},
        in_table=True,
        **SIZES,
    ),
    LearnerRow(
        title="thompson_central",
        learner=lambda horizon: thompson_central(num_arms=ARMS),
        world=bandit,
        horizon=200,
        **SIZES,
    ),
    LearnerRow(
        title="adap_klucb",
        learner=lambda horizon: adap_klucb(num_arms=ARMS),
        world=bandit,
        horizon=LONG,
        **SIZES,
    ),
    LearnerRow(
        title="imed_central",
        learner=lambda horizon: imed_central(num_arms=ARMS),
        world=bandit,
        horizon=LONG,
        **SIZES,
    ),
    LearnerRow(
        title="fkm",
        learner=lambda horizon: fkm(dim=DIM, horizon=horizon),
        world=lambda horizon: linear_losses(dim=DIM, feedback="point"),
        horizon=1000,
        peers={"Numba": convex_peer(numba_bandits.fkm)},
        in_table=True,
        **SIZES,
    ),
    LearnerRow(
        title="two_point",
        learner=lambda horizon: two_point(dim=DIM, horizon=horizon),
        world=lambda horizon: linear_losses(dim=DIM, feedback="difference"),
        horizon=1000,
        peers={"Numba": convex_peer(numba_bandits.two_point)},
        in_table=True,
        **SIZES,
    ),
    counts(
        "explore_then_commit",
        lambda horizon: explore_then_commit(num_arms=8, explore_rounds=800),
        FEW_MEANS,
        10**3,
        1000,
    ),
    counts(
        "explore_then_commit",
        lambda horizon: explore_then_commit(num_arms=8, explore_rounds=800),
        FEW_MEANS,
        10**9,
        1000,
    ),
    counts(
        "pairwise_elimination",
        lambda horizon: pairwise_elimination(num_arms=ARMS),
        MEANS,
        10**9,
        250,
    ),
    counts(
        "pairwise_elimination_central",
        lambda horizon: pairwise_elimination_central(num_arms=ARMS),
        MEANS,
        10**9,
        250,
    ),
    counts(
        "successive_elimination_central",
        lambda horizon: successive_elimination_central(num_arms=ARMS),
        MEANS,
        10**9,
        250,
    ),
    counts(
        "noisy_argmax",
        lambda horizon: noisy_argmax(num_arms=8, num_rounds=horizon),
        FEW_MEANS,
        10**9,
        1000,
    ),
]

"""Problems that published code and jaxdp's learners both play."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

import jaxdp
from benchmarks.published.players import (
    ARMS,
    CONTEXTS,
    DELTA,
    DIM,
    MEANS,
    NUM_CONTEXTS,
    UNIT,
    WORLDS,
    Play,
    batched_elimination,
    keirp,
    numba_player,
    one_call_linear_ucb,
    reports,
    sparse,
)
from jaxdp import bandits

SAME_ELIMINATION = (
    "The same algorithm, DP-SE of Sajed & Sheffet (2019), with failure probability 0.05; "
    'constants="paper" has the published constants'
)

SEEDS = 100  # runs of jaxdp's learners


class Match(NamedTuple):
    """Published code and learners of jaxdp on one problem.

    Attributes:
        world: the problem.
        epsilon: budget.
        horizon: rounds.
        seeds: runs of the published code, by default.
        theirs: path of a checkout -> (generator -> regret of a run, and processor seconds).
        ours: names of learners of jaxdp -> the learner and its values.
        note: parameters, and how the algorithms differ.
    """

    world: str
    epsilon: float
    horizon: int
    seeds: int
    theirs: Callable[[Path], Play]
    ours: dict[str, tuple[jaxdp.Learner, dict[str, float]]]
    note: str = ""


def elimination(constants: str, epsilon: float) -> tuple[jaxdp.Learner, dict[str, float]]:
    learner = bandits.successive_elimination_central(num_arms=len(MEANS), constants=constants)
    return learner, {"epsilon": epsilon, "failure_prob": 0.05}


def greedy(epsilon: float, world: str, ball: jaxdp.Learner, seeds: int) -> Match:
    """Returns the match of greedy gradient steps with reports in a ball."""
    name = 'linear_ucb(report="l2_ball")'
    return Match(
        world,
        epsilon,
        20_000,
        seeds,
        reports("GreedySGDServer", "SGDLDPMechanism", epsilon, world, 20_000),
        {
            name: (ball, {"epsilon": epsilon}),
            f"{name}, confidence_multiplier 0.1": (ball, {"epsilon": epsilon, "confidence_multiplier": 0.1}),
        },
        "Greedy gradient steps, beside optimism on reports of moments: other algorithms, both ε-DP without δ",
    )


def matches() -> dict[str, dict[str, Match]]:
    """Returns the matches by repository, and by name of class or function."""
    horizon, contextual = 100_000, bandits.contextual
    eliminations = {
        f'successive_elimination_central(constants="{constants}")': elimination(constants, 1.0)
        for constants in ("paper", "tight")
    }
    bounds = {
        'ucb_central(release="tree")': (
            bandits.ucb_central(num_arms=len(MEANS), release="tree", horizon=horizon),
            {"epsilon": 0.25},
        ),
        "ucb_central()": (bandits.ucb_central(num_arms=len(MEANS)), {"epsilon": 0.25}),
    }
    rounds = 20_000
    linear = {"num_arms": NUM_CONTEXTS, "dim": DIM, "horizon": rounds}
    ball = contextual.linear_ucb(**linear, report="l2_ball")
    return {
        "keirp/private-bandits": {
            "DPSuccessiveEliminationSolver": Match(
                ARMS,
                1.0,
                horizon,
                100,
                keirp("dp_successive_elimination", "DPSuccessiveEliminationSolver", 1.0, horizon, beta=0.05),
                eliminations,
                SAME_ELIMINATION,
            ),
            "DPUCBBoundSolver": Match(
                ARMS,
                0.25,
                horizon,
                100,
                keirp("dp_ucb_bound", "DPUCBBoundSolver", 0.25, horizon),
                bounds,
                "Each arm has a hybrid counter. Bounds are much smaller after 1, 2, 4, ... plays than between, so that "
                "arms stop there",
            ),
            "DPUCBSolver": Match(
                ARMS,
                0.25,
                horizon,
                20,
                keirp("dp_ucb", "DPUCBSolver", 0.25, horizon),
                {"ucb_central()": bounds["ucb_central()"]},
                "Its bounds leave the noise out; each arm has a hybrid counter",
            ),
        },
        "sayakrc/Differentially-Private-Bandits": {
            "DPSE": Match(
                ARMS,
                1.0,
                horizon,
                100,
                batched_elimination(1.0, horizon),
                eliminations,
                SAME_ELIMINATION,
            )
        },
        "NP-Hardest/DP-NCB": {
            "adap_ucb_single": Match(
                ARMS,
                1.0,
                horizon,
                100,
                numba_player("AdaPUCB", "adap_ucb_single", 1.0, horizon, 3.1, 0),
                {
                    "ucb_central()": (bandits.ucb_central(num_arms=len(MEANS)), {"epsilon": 1.0}),
                    "ucb_central(), exploration_rate 3.1": (
                        bandits.ucb_central(num_arms=len(MEANS)),
                        {"epsilon": 1.0, "exploration_rate": 3.1},
                    ),
                },
                "alpha=3.1, as in their script. ucb_central sums all blocks of an arm, theirs keeps the last one",
            ),
            "LDP_UCB_L_single": Match(
                ARMS,
                1.0,
                horizon,
                100,
                numba_player("LDPUCB", "LDP_UCB_L_single", 1.0, horizon, 0),
                {"ucb()": (bandits.ucb(num_arms=len(MEANS)), {"epsilon": 1.0})},
                "UCB on local reports in both. Theirs has a larger radius, forced plays, and Laplace reports clipped "
                "to [0, 1]; ucb has randomized response",
            ),
        },
        "MIFA-Lab/LDPbandit2020": {
            f"LinUCB at ε = {epsilon:g}": Match(
                CONTEXTS,
                epsilon,
                rounds,
                20,
                one_call_linear_ucb(epsilon, rounds),
                {"linear_ucb()": (contextual.linear_ucb(**linear), {"epsilon": epsilon, "delta": DELTA})},
                "LinUCB of Zheng et al. (2020), δ = 1e-5. Theirs has the published radii, the noise of its file, and "
                "x'V⁻¹x in the bonus where the paper has its root. Uniform play has 6,623",
            )
            for epsilon in (1.0, 10.0)
        },
        "sunritc/FLIPHAT": {
            "DP_SLCB": Match(
                CONTEXTS,
                1.0,
                rounds,
                10,
                sparse(1.0, rounds),
                {
                    "linear_ucb_joint()": (
                        contextual.linear_ucb_joint(**linear),
                        {"epsilon": 1.0, "delta": DELTA},
                    )
                },
                "Greedy play on hard thresholding, beside optimism: other algorithms in the joint model, δ = 1e-5. "
                "Theirs is made for sparse models in many dimensions: s = d = 5, eta = 1, M0 = 0.16 as in its script",
            )
        },
        "liangzp/LDP-Bandit": {
            "OLSMechanism with LDPUCBServer": Match(
                CONTEXTS,
                1.0,
                rounds,
                20,
                reports("LDPUCBServer", "OLSMechanism", 1.0, CONTEXTS, rounds),
                {
                    'linear_ucb(constants="paper")': (
                        contextual.linear_ucb(**linear, constants="paper"),
                        {"epsilon": 1.0, "delta": DELTA, "reward_bound": 2.0},
                    ),
                    "linear_ucb()": (contextual.linear_ucb(**linear), {"epsilon": 1.0, "delta": DELTA}),
                },
                "LinUCB of Zheng et al. (2020), δ = 1e-5, theirs with a tenth of the published regulariser. Uniform "
                "play has 6,623: with published constants both hardly learn in these rounds; agreement shows little",
            ),
            "SGDLDPMechanism with GreedySGDServer": greedy(8.0, CONTEXTS, ball, seeds=100),
            "SGDLDPMechanism with GreedySGDServer, no noise": greedy(8.0, UNIT, ball, seeds=20),
        },
    }


def play_ours(world: str, horizon: int, learner: jaxdp.Learner, values: dict[str, float]) -> dict[str, float]:
    """Returns regret and processor seconds a round of a learner of jaxdp, compiled; the world's draws count, too."""
    environment = (
        bandits.bernoulli_bandit(MEANS)
        if world == ARMS
        else bandits.contextual.linear_contexts("sphere", num_arms=NUM_CONTEXTS, dim=DIM)
    )
    run = jaxdp.simulator(learner, environment, horizon=horizon)
    arguments = jaxdp.lane_keys(jax.random.key(0), SEEDS), run.params(**values, **WORLDS[world])
    play = jax.jit(jax.vmap(lambda *lane: run(*lane)["pseudo_regret"][-1], in_axes=(0, None)))
    compiled_play = play.lower(*arguments).compile()
    start = time.process_time()
    regrets = np.asarray(compiled_play(*arguments))
    return summary(regrets, (time.process_time() - start) / SEEDS / horizon)


def play_theirs(match: Match, play: Play, seeds: int) -> dict[str, float]:
    """Returns regret and processor seconds a round of published code."""
    runs = [play(np.random.default_rng(seed)) for seed in range(seeds)]
    regrets, seconds = (np.asarray(column) for column in zip(*runs, strict=True))
    return summary(regrets, float(seconds.sum()) / seeds / match.horizon)


def summary(regrets: np.ndarray, seconds: float) -> dict[str, float]:
    return {
        "regret": round(float(regrets.mean()), 1),
        "error": round(float(regrets.std(ddof=1) / len(regrets) ** 0.5), 1),
        "seeds": len(regrets),
        "microseconds": float(f"{seconds * 1e6:.2g}"),
    }

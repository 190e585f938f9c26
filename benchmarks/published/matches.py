"""Problems that published code and jaxdp's learners both play."""

import importlib
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import jax
import numpy as np

import jaxdp
from benchmarks.published.arms import Batches, Stepping
from benchmarks.published.cases import load
from benchmarks.published.contexts import Reporting
from jaxdp import bandits

MEANS = np.linspace(0.75, 0.25, 5)
ARMS = "5 Bernoulli arms, means 0.75 to 0.25"
CONTEXTS = "contexts on the sphere, d = 5, 10 arms, |θ| = 1/2, uniform noise of 1/2"
DIM, NUM_CONTEXTS, DELTA = 5, 10, 1e-5

SAME_ELIMINATION = (
    "The same algorithm, DP-SE of Sajed & Sheffet (2019), with failure probability 0.05; "
    'constants="paper" has the published constants'
)

Play = Callable[[np.random.Generator], tuple[float, float]]


class Match(NamedTuple):
    """Published code and learners of jaxdp on one problem.

    Attributes:
        world: the problem.
        epsilon: budget.
        horizon: rounds.
        seeds: runs of the published code, by default.
        our_seeds: runs of jaxdp's learners.
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
    our_seeds: int = 100

    def environment(self) -> jaxdp.Environment:
        if self.world == ARMS:
            return bandits.bernoulli_bandit(MEANS)
        return bandits.contextual.linear_contexts("sphere", num_arms=NUM_CONTEXTS, dim=DIM)


def play_arms(make: Callable[[np.random.Generator], Any], horizon: int) -> Play:
    """Returns a player of Bernoulli arms for learners with `act` and `update`."""
    gaps = MEANS.max() - MEANS

    def play(generator: np.random.Generator) -> tuple[float, float]:
        np.random.seed(generator.integers(2**32, size=4))  # noqa: NPY002 -- their generator
        means, draws, plays = MEANS.tolist(), generator.random(horizon).tolist(), [0] * len(MEANS)
        start = time.process_time()
        learner = make(generator)
        for draw in draws:
            arm = int(learner.act())
            learner.update(arm, float(draw < means[arm]))
            plays[arm] += 1
        return float(gaps @ plays), time.process_time() - start

    return play


def keirp(module: str, name: str, epsilon: float, horizon: int, **options: Any) -> Callable[[Path], Play]:
    """Returns a player of a solver of keirp/private-bandits."""

    def make_player(folder: Path) -> Play:
        solver = getattr(load(folder, f"private_bandits.solvers.private.{module}"), name)
        return play_arms(lambda _: Stepping(solver(n_arms=len(MEANS), epsilon=epsilon, **options)), horizon)

    return make_player


def batched_elimination(epsilon: float, horizon: int) -> Callable[[Path], Play]:
    """Returns a player of `DPSE` of sayakrc/Differentially-Private-Bandits."""

    def make_player(folder: Path) -> Play:
        module = load(folder, "MABPrivate")
        world = SimpleNamespace(K=len(MEANS), epsilon=epsilon)

        def make(generator: np.random.Generator) -> Batches:
            module.rng = generator  # theirs has no seed
            return Batches(module.DPSE(world, horizon, {"crs": 1, "delta": 0.05, "dc": 2}))

        return play_arms(make, horizon)

    return make_player


def numba_player(module: str, name: str, *options: float) -> Callable[[Path], Play]:
    """Returns a player of a Numba function of NP-Hardest/DP-NCB, which draws its own rewards."""
    gaps = MEANS.max() - MEANS

    def make_player(folder: Path) -> Play:
        numba = importlib.import_module("numba")
        function = getattr(load(folder, f"algorithms.{module}"), name)
        seed = numba.njit(lambda value: np.random.seed(value))  # noqa: NPY002 -- Numba's generator
        arguments = MEANS, *options
        seed(0)
        function(*arguments)  # compiles

        def play(generator: np.random.Generator) -> tuple[float, float]:
            seed(int(generator.integers(2**32)))
            start = time.process_time()
            chosen = function(*arguments)
            return float(gaps[chosen].sum()), time.process_time() - start

        return play

    return make_player


def reports(server: str, mechanism: str, epsilon: float, delta: float, horizon: int) -> Callable[[Path], Play]:
    """Returns a player of a server and a mechanism of liangzp/LDP-Bandit, on the contexts and rewards of `CONTEXTS`."""

    def make_player(folder: Path) -> Play:
        scheme = folder / "Scheme2"
        parts = load(scheme, "servers.LDP_servers"), load(scheme, "mechanisms.LDP")
        classes = getattr(parts[0], server), getattr(parts[1], mechanism)
        about = {
            "env": {
                "time_horizon": horizon,
                "dimension": DIM,
                "instance_variance": 1,
                "n_action": NUM_CONTEXTS,
                "yx": "normal",
            },
            "mechanism": {"epsilon": epsilon, "delta": delta},
            "fail_prob": 0.05,
        }

        def play(generator: np.random.Generator) -> tuple[float, float]:
            np.random.seed(generator.integers(2**32, size=4))  # noqa: NPY002 -- their generator
            theta = generator.normal(size=DIM)
            theta /= 2 * np.linalg.norm(theta)
            start_theta = generator.normal(size=(DIM, 1))
            about["server"] = {"batch": False, "init_theta": start_theta / np.linalg.norm(start_theta)}
            learner, regret, seconds = Reporting(*(part(about) for part in classes)), 0.0, 0.0
            for _ in range(horizon):
                contexts = generator.normal(size=(NUM_CONTEXTS, DIM))
                contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
                means = contexts @ theta
                noise = generator.uniform(-0.5, 0.5)
                start = time.process_time()
                arm = learner.act(contexts)
                learner.update(contexts, arm, means[arm] + noise)
                seconds += time.process_time() - start
                regret += means.max() - means[arm]
            return float(regret), seconds

        return play

    return make_player


def elimination(constants: str, epsilon: float) -> tuple[jaxdp.Learner, dict[str, float]]:
    learner = bandits.successive_elimination_central(num_arms=len(MEANS), constants=constants)
    return learner, {"epsilon": epsilon, "failure_prob": 0.05}


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
    linear, rounds = {"num_arms": NUM_CONTEXTS, "dim": DIM, "horizon": 20_000}, 20_000
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
                10,
                keirp("dp_ucb_bound", "DPUCBBoundSolver", 0.25, horizon),
                bounds,
                "Each arm has a hybrid counter. Bounds are much smaller after 1, 2, 4, ... plays than between, so that "
                "arms stop there: all runs had the same regret",
                our_seeds=20,
            ),
            "DPUCBSolver": Match(
                ARMS,
                0.25,
                horizon,
                10,
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
        "liangzp/LDP-Bandit": {
            "OLSMechanism with LDPUCBServer": Match(
                CONTEXTS,
                1.0,
                rounds,
                20,
                reports("LDPUCBServer", "OLSMechanism", 1.0, DELTA, rounds),
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
            "SGDLDPMechanism with GreedySGDServer": Match(
                CONTEXTS,
                8.0,
                rounds,
                20,
                reports("GreedySGDServer", "SGDLDPMechanism", 8.0, DELTA, rounds),
                {
                    'linear_ucb(report="l2_ball")': (ball, {"epsilon": 8.0}),
                    'linear_ucb(report="l2_ball"), confidence_multiplier 0.1': (
                        ball,
                        {"epsilon": 8.0, "confidence_multiplier": 0.1},
                    ),
                },
                "Greedy gradient steps, beside optimism on reports of moments: other algorithms, both ε-DP without δ",
            ),
        },
    }


def play_ours(match: Match, learner: jaxdp.Learner, values: dict[str, float], seeds: int) -> dict[str, float]:
    """Returns regret and processor seconds a round of a learner of jaxdp, compiled; the world's draws count, too."""
    run = jaxdp.simulator(learner, match.environment(), horizon=match.horizon)
    arguments = jaxdp.lane_keys(jax.random.key(0), seeds), run.params(**values)
    play = jax.jit(jax.vmap(lambda *lane: run(*lane)["pseudo_regret"][-1], in_axes=(0, None)))
    compiled_play = play.lower(*arguments).compile()
    start = time.process_time()
    regrets = np.asarray(compiled_play(*arguments))
    return summary(regrets, (time.process_time() - start) / seeds / match.horizon)


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

"""Players of published code on jaxdp's worlds: each takes a checkout, and plays one run for a generator."""

import importlib
import itertools
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import numpy as np

from benchmarks.published.arms import Batches, Stepping
from benchmarks.published.cases import load
from benchmarks.published.contexts import Reporting, Sparse

MEANS = np.linspace(0.75, 0.25, 5)
ARMS = "5 Bernoulli arms, means 0.75 to 0.25"
CONTEXTS = "contexts on the sphere, d = 5, 10 arms, |θ| = 1/2, uniform noise of 1/2"
UNIT = "contexts on the sphere, d = 5, 10 arms, |θ| = 1, no noise"
WORLDS = {ARMS: {}, CONTEXTS: {"theta_norm": 0.5, "noise": 0.5}, UNIT: {"theta_norm": 1.0, "noise": 0.0}}
DIM, NUM_CONTEXTS, DELTA = 5, 10, 1e-5

Play = Callable[[np.random.Generator], tuple[float, float]]
Step = Callable[[np.ndarray, np.ndarray], int]


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


def play_contexts(make: Callable[[np.random.Generator], Step], world: str, horizon: int) -> Play:
    """Returns a player of a world of contexts; `make` returns (contexts, rewards of all arms) -> the arm played."""

    def play(generator: np.random.Generator) -> tuple[float, float]:
        np.random.seed(generator.integers(2**32, size=4))  # noqa: NPY002 -- their generator
        theta, values = generator.normal(size=DIM), WORLDS[world]
        theta *= values["theta_norm"] / np.linalg.norm(theta)
        step, regret, seconds = make(generator), 0.0, 0.0
        for _ in range(horizon):
            contexts = generator.normal(size=(NUM_CONTEXTS, DIM))
            contexts /= np.linalg.norm(contexts, axis=1, keepdims=True)
            means = contexts @ theta
            rewards = means + generator.uniform(-values["noise"], values["noise"])
            start = time.process_time()
            arm = step(contexts, rewards)
            seconds += time.process_time() - start
            regret += means.max() - means[arm]
        return float(regret), seconds

    return play


def in_turn(learner: Any) -> Step:
    """Returns the step of a learner with `act` and `update`."""

    def step(contexts: np.ndarray, rewards: np.ndarray) -> int:
        arm = learner.act(contexts)
        learner.update(contexts, arm, rewards[arm])
        return arm

    return step


def reports(server: str, mechanism: str, epsilon: float, world: str, horizon: int) -> Callable[[Path], Play]:
    """Returns a player of a server and a mechanism of liangzp/LDP-Bandit."""

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
            "mechanism": {"epsilon": epsilon, "delta": DELTA},
            "fail_prob": 0.05,
        }

        def make(generator: np.random.Generator) -> Step:
            start_theta = generator.normal(size=(DIM, 1))
            about["server"] = {"batch": False, "init_theta": start_theta / np.linalg.norm(start_theta)}
            return in_turn(Reporting(*(part(about) for part in classes)))

        return play_contexts(make, world, horizon)

    return make_player


def one_call_linear_ucb(epsilon: float, horizon: int) -> Callable[[Path], Play]:
    """Returns a player of `LinUCB` of MIFA-Lab/LDPbandit2020, which chooses and reports in one call."""

    def make_player(folder: Path) -> Play:
        learner_class = load(folder, "src.linucb").LinUCB

        def make(generator: np.random.Generator) -> Step:
            del generator  # theirs draws from the global one
            learner, rounds = (
                learner_class(DIM, epsilon=epsilon, delta=DELTA, alpha=0.05, T=horizon),
                itertools.count(1),
            )

            def step(contexts: np.ndarray, rewards: np.ndarray) -> int:
                learner.update_status(next(rounds))
                *report, arm = learner.construct(contexts, rewards)
                learner.server_update(*report)
                return arm

            return step

        return play_contexts(make, CONTEXTS, horizon)

    return make_player


def sparse(epsilon: float, horizon: int) -> Callable[[Path], Play]:
    """Returns a player of `DP_SLCB` of sunritc/FLIPHAT, with its estimator compiled."""

    def make_player(folder: Path) -> Play:
        module = load(folder, "SparseBandit.fliphat")
        module.NIHT = jax.jit(module.NIHT, static_argnames=("sparsity", "C"))

        def make(generator: np.random.Generator) -> Step:
            options = {"s": DIM, "M0": 0.16, "eta": 1.0, "xmax": 1.0, "bmax": 1.0}
            seed = int(generator.integers(2**31))
            return in_turn(
                Sparse(module.DP_SLCB(NUM_CONTEXTS, DIM, epsilon=epsilon, delta=DELTA, seed=seed, **options))
            )

        return play_contexts(make, CONTEXTS, horizon)

    return make_player

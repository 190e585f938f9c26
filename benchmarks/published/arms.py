"""Adapters of repositories with learners of arms, and with linear learners of fixed features."""

import queue
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from benchmarks.published.cases import Case, claim, load
from jaxdp.audit import python_learner


class Stepping:
    """Plays a solver whose `step` takes the last reward and arm, and returns the next arm."""

    def __init__(self, solver: Any):
        self.solver, self.arm = solver, solver.step(None, None)

    def act(self) -> int:
        return self.arm

    def update(self, arm: int, reward: float) -> None:
        self.arm = self.solver.step(reward, arm)

    def estimates(self) -> list[float]:
        return [0.0 if estimate is None else float(estimate) for estimate in self.solver.estimates]


def private_bandits(folder: Path) -> dict[str, Case]:
    """Returns the cases of keirp/private-bandits."""
    solvers = "private_bandits.solvers.private."
    classes = {
        "DPUCBSolver": ("dp_ucb", {}),
        "DPUCBBoundSolver": ("dp_ucb_bound", {}),
        "PrivateUCBSolver": ("private_ucb", {"T": 8, "gamma": 8.0**-4}),
        "PrivateUCBBoundlessSolver": ("private_ucb_boundless", {"T": 8}),
        "DPLogSoftmaxSolver": ("dp_log_softmax", {"T": 8}),
        "DPBinarySoftmaxSolver": ("dp_binary_softmax", {"T": 8}),
    }
    cases = {}
    for name, (module, options) in classes.items():
        make = getattr(load(folder, solvers + module), name)
        learner = python_learner(
            lambda make=make, options=options: Stepping(make(n_arms=2, epsilon=1.0, **options)),
            num_actions=2,
            guarantee=claim(1.0),
            observe=Stepping.estimates,
        )
        cases[name] = Case(learner, 7, "", "arms, released estimates")
    softmax = load(folder, solvers + "dp_softmax").DPSoftmaxSolver
    learner = python_learner(lambda: Stepping(softmax(n_arms=2, epsilon=1.0, T=7)), num_actions=2, guarantee=claim(1.0))
    cases["DPSoftmaxSolver"] = Case(learner, 7, "", "arms")
    elimination = load(folder, solvers + "dp_successive_elimination").DPSuccessiveEliminationSolver
    learner = python_learner(
        lambda: Stepping(elimination(n_arms=2, epsilon=1.0, beta=14.0)), num_actions=2, guarantee=claim(1.0)
    )
    cases["DPSuccessiveEliminationSolver"] = Case(learner, 40, "beta=14, for an epoch of 36 rounds", "arms")
    return cases


class Batches:
    """Plays one of the algorithms with `get_arm` and `update` that take the round."""

    def __init__(self, algorithm: Any):
        self.algorithm, self.round = algorithm, 0

    def act(self) -> int:
        return self.algorithm.get_arm(self.round)

    def update(self, arm: int, reward: float) -> None:
        self.algorithm.update(self.round, arm, reward)
        self.round += 1

    def aggregate(self) -> np.ndarray:
        """Returns the sums of the reports, modulo the public modulus: aggregation shows them after a batch."""
        shown, algorithm = np.zeros(2), self.algorithm
        if algorithm.RoundCount == 0:
            shown[: len(algorithm.rewards)] = algorithm.rewards % algorithm.modulo
        return shown

    def statistics(self) -> np.ndarray:
        return np.concatenate([self.algorithm.B, np.ravel(self.algorithm.Gram)])

    def from_indices(self) -> float:
        """Returns the noisy sum of rewards that the indices of the features +1 and -1 determine; 0 if one is NaN."""
        algorithm = self.algorithm
        if self.round == 0 or not hasattr(algorithm, "mu"):
            return 0.0
        plus, minus = algorithm.mu
        return float(np.nan_to_num((plus - minus) / 2 * (2 * algorithm.cew / (plus + minus)) ** 2))


def differentially_private_bandits(folder: Path) -> dict[str, Case]:
    """Returns the cases of sayakrc/Differentially-Private-Bandits."""
    arms, linear = load(folder, "MABPrivate"), load(folder, "LinBanditPrivate")
    environment = SimpleNamespace(K=2, epsilon=1.0)

    def batched(name: str, **params: Any) -> Callable[[np.random.Generator], Batches]:
        def make(generator: np.random.Generator) -> Batches:
            arms.rng = generator  # theirs has no seed
            return Batches(getattr(arms, name)(environment, 100, {"crs": 1, **params}))

        return make

    def linear_in(features: list[list[float]], name: str, epsilon: float, rounds: int) -> Callable[[], Batches]:
        world = SimpleNamespace(X=np.asarray(features), epsilon=epsilon, delta=0.1, BatchSize=rounds)

        def make() -> Batches:
            linear.d = len(features[0])  # their methods read a global variable of the script
            return Batches(getattr(linear, name)(world, rounds, {}))

        return make

    biased = [[1.0, 1.0], [-1.0, 1.0]]  # a unit sphere and a bias term, as in their script
    return {
        "DPSE": Case(
            python_learner(batched("DPSE", delta=7.9, dc=0.25), num_actions=2, guarantee=claim(1.0)),
            8,
            "delta=7.9 and dc=0.25, for batches of one or two rounds of an arm",
            "arms",
        ),
        "BatchSEDistDP": Case(
            python_learner(
                batched("BatchSEDistDP", delta=0.1, dc=4),
                num_actions=2,
                guarantee=claim(1.0),
                observe=Batches.aggregate,
            ),
            8,
            "",
            "arms, aggregated reports of each batch",
        ),
        "LDPLinUCB": Case(
            python_learner(
                linear_in(biased, "LDPLinUCB", 3.0, 3),
                num_actions=2,
                guarantee=claim(3.0, 0.1, "local"),
                observe=Batches.statistics,
            ),
            3,
            "epsilon=3 (theirs: 0.2, 1, 10), features of norm sqrt(2) as in their script",
            "arms, reports",
        ),
        "JDPLinUCB": Case(
            python_learner(
                linear_in([[1.0], [-1.0]], "JDPLinUCB", 1.0, 4),
                num_actions=2,
                guarantee=claim(1.0, 0.1),
                observe=Batches.from_indices,
            ),
            4,
            "d=1; rewards alone are changed; the noisy statistics are attacked, not the arms",
            "arms, indices `mu`, which the noisy statistics determine",
        ),
    }


class Pulling:
    """Plays a function that draws its own rewards: it runs in a thread, and waits for each reward.

    The function's `sample_reward` is replaced. It gets the arm, because the means are 0, 1, ...
    """

    def __init__(self, module: Any, play: Callable[[], Any], names: tuple[str, ...] = ()):
        self.names, self.shown, self.error = names, [], None
        self.asked, self.rewards = queue.SimpleQueue(), queue.SimpleQueue()
        module.sample_reward = self.ask
        threading.Thread(target=self.play, args=(play,), daemon=True).start()
        self.wait()

    def play(self, function: Callable[[], Any]) -> None:
        try:
            function()
        except Exception as error:
            self.error = error
        self.asked.put(None)

    def ask(self, arm: float, kind: int) -> float:
        state = sys._getframe(1).f_locals
        self.shown = [np.array(state.get(name, np.zeros(2))) for name in self.names]
        self.asked.put(int(arm))
        return self.rewards.get()

    def act(self) -> int:
        return self.arm

    def update(self, arm: int, reward: float) -> None:
        self.rewards.put(reward)
        self.wait()

    def wait(self) -> None:
        self.arm = self.asked.get()
        if self.error is not None:
            raise self.error


def dp_ncb(folder: Path) -> dict[str, Case]:
    """Returns the cases of NP-Hardest/DP-NCB, whose functions run without Numba here, so that rewards can be given."""
    sys.modules["numba"] = types.SimpleNamespace(njit=lambda function: function)  # pyright: ignore[reportArgumentType]
    means, cases = np.arange(2.0), {}

    def add(module_name: str, name: str, rounds: int, guarantee: Any, seen: str, names: Any = (), **options: Any):
        module = load(folder, f"algorithms.{module_name}")
        play = getattr(module, name)
        learner = python_learner(
            lambda: Pulling(module, lambda: play(means, T=rounds, test_type=0, **options), names),
            num_actions=2,
            guarantee=guarantee,
            observe=("shown",) if names else (),
        )
        cases[name] = Case(learner, rounds, "", seen)

    add("AdaPUCB", "adap_ucb_single", 8, claim(1.0), "arms", epsilon=1.0, alpha=3.1)
    noisy_means = ("mu_tilde",)
    add(
        "GDPNCB",
        "GDP_NCB_single",
        16,
        claim(1.0),
        "arms, private means",
        noisy_means,
        epsilon=1.0,
        alpha=3.1,
        c=3.0,
        W=5,
    )
    local = claim(0.2, model="local")
    add("LDPNCB", "LDP_NCB_single", 7, local, "arms, reports", ("sums",), epsilon=0.2, alpha=3.1, c=3.0, W=3)
    add("LDPUCB", "LDP_UCB_L_single", 7, local, "arms, reports", ("sums",), epsilon=0.2)
    return cases

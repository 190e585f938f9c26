"""Adapters of repositories with learners of contexts."""

from pathlib import Path
from typing import Any

import jax
import numpy as np

from benchmarks.published.cases import ALL_DATA, Case, claim, load
from jaxdp.audit import python_learner


class Reporting:
    """Plays a server and the mechanism that packs a user's report."""

    def __init__(self, server: Any, mechanism: Any):
        self.server, self.mechanism, self.round = server, mechanism, 0

    def act(self, context: np.ndarray) -> int:
        index, self.features = self.server.decide(context.T)
        return index

    def update(self, context: np.ndarray, arm: int, reward: float) -> None:
        self.package = self.mechanism.pack(self.features, reward, self.server)
        self.server.update(self.round, self.package)
        self.round += 1


def ldp_bandit(folder: Path) -> dict[str, Case]:
    """Returns the cases of liangzp/LDP-Bandit, by name of the mechanism."""
    scheme = folder / "Scheme2"
    servers, plain, other = (
        load(scheme, name) for name in ("servers.LDP_servers", "mechanisms.LDP", "mechanisms.RLDP")
    )
    servers.print = lambda *words: None  # one server prints its kind of reward
    parts = {
        "OLSMechanism": (plain, "GOLSServer", 0.01),
        "GLMMechanism": (plain, "LDPGLMServer", 0.01),
        "SGDLDPMechanism": (plain, "GreedySGDServer", 0.0),
        "RSGDLDPMechanism": (other, "RSGDServer", 0.0),
        "RGLMMechanism": (other, "RGLMServer", 0.01),
    }
    params = {
        "env": {"time_horizon": 1000, "dimension": 2, "instance_variance": 1, "n_action": 2, "yx": "normal"},
        "server": {"batch": False, "init_theta": np.array([[0.6], [0.8]])},
        "mechanism": {"epsilon": 1.0, "delta": 0.01},
        "fail_prob": 0.1,
    }
    cases = {}
    for name, (module, server, delta) in parts.items():
        classes = getattr(servers, server), getattr(module, name)
        learner = python_learner(
            lambda classes=classes: Reporting(*(part(params) for part in classes)),
            problem="contextual",
            num_actions=2,
            context_shape=(2, 2),
            guarantee=claim(1.0, delta, "local"),
            observe=["package"],
        )
        cases[name] = Case(learner, 3, "rewards alone are changed, not contexts", "arms, packages")
    return cases


class Constructing:
    """Plays the learner whose `construct` decides and makes the report in one call, with the rewards of all arms."""

    def __init__(self, learner: Any):
        self.learner, self.round, self.report = learner, 0, ()

    def act(self, context: np.ndarray) -> int:
        self.round += 1
        self.learner.update_status(self.round)
        return self.learner.construct(context, np.zeros(len(context)))[2]  # this call's report is thrown away

    def update(self, context: np.ndarray, arm: int, reward: float) -> None:
        *self.report, chosen = self.learner.construct(context, np.where(np.arange(len(context)) == arm, reward, -1.0))
        assert chosen == arm
        self.learner.server_update(*self.report)


def ldp_bandit_2020(folder: Path) -> dict[str, Case]:
    """Returns the case of MIFA-Lab/LDPbandit2020."""
    learner_class = load(folder, "src.linucb").LinUCB
    learner = python_learner(
        lambda: Constructing(learner_class(2, epsilon=1.0, delta=0.1, T=3)),
        problem="contextual",
        num_actions=2,
        context_shape=(2, 2),
        ends=(-1.0, 1.0),
        guarantee=claim(1.0, 0.1, "local"),
        observe=["report"],
    )
    return {"LinUCB": Case(learner, 3, "epsilon=1 (theirs: 8e5); rewards alone are changed", "arms, reports")}


class Sparse:
    """Plays the learner with `take_action` and `observe_reward`."""

    def __init__(self, learner: Any):
        self.learner = learner

    def act(self, context: np.ndarray) -> int:
        return int(self.learner.take_action(context))

    def update(self, context: np.ndarray, arm: int, reward: float) -> None:
        self.learner.observe_reward(reward)

    def estimate(self) -> np.ndarray:
        return np.asarray(self.learner.beta)


def fliphat(folder: Path) -> dict[str, Case]:
    """Returns the case of sunritc/FLIPHAT; its estimator is compiled here, which their script leaves out."""
    module = load(folder, "SparseBandit.fliphat")
    module.NIHT = jax.jit(module.NIHT, static_argnames=("sparsity", "C"))

    def make(generator: np.random.Generator) -> Sparse:
        seed = int(generator.integers(2**31))
        return Sparse(
            module.DP_SLCB(2, 3, epsilon=1.0, delta=0.01, seed=seed, s=1, M0=2.0, eta=0.1, xmax=1.0, bmax=1.0)
        )

    learner = python_learner(
        make,
        problem="contextual",
        num_actions=2,
        context_shape=(2, 3),
        guarantee=claim(1.0, 0.01, "joint", **ALL_DATA),
        observe=Sparse.estimate,
    )
    setting = "d=3, s=1, M0=2, eta=0.1, another seed in each run"
    return {"DP_SLCB": Case(learner, 3, setting, "arms of the other rounds, estimates")}

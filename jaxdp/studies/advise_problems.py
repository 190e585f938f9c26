"""The problems on which registered algorithms are compared: candidates, an easy and a hard instance, how fast they run.

What a candidate is played by decides how many rounds can be afforded: totals take no time a round, blocks little, and
single rounds most.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxdp import dueling, experts
from jaxdp.bandits import bernoulli_bandit
from jaxdp.core import Environment, Learner
from jaxdp.registry import LEARNERS, LearnerEntry
from jaxdp.simulation import Run, simulator
from jaxdp.studies import dueling_regret, dueling_trust, trust_models

SECONDS_OF_COMPILING = 6.0  # of a candidate, on one core
ROUND = {"counts": 0.0, "blocks": 60e-9, "rounds": 500e-9}  # seconds of one core, for ten arms
SECONDS_OF_A_CANDIDATE = 10.0  # of one core, that its rounds may take
FEWEST_ROUNDS = 1000
EXPERTS = (
    "exponential_weights",
    "exponential_weights_gaussian",
    "lazy_weights",
    "limited_updates",
    "limited_updates_oblivious",
    "limited_updates_oblivious_zcdp",
    "svt_restarts",
    "counter_weights",
)


class Problem(NamedTuple):
    """A problem and its candidates.

    Attributes:
        what: the problem, as a title has it.
        loss: what is measured, as an axis has it.
        candidates: () -> entries by name.
        sized: (entry, size, horizon) -> the entry for so many arms or experts and rounds.
        world: (size) -> Environment.
        value: of the environment, by which instances differ; None where they are worlds of their own.
        instances: the value of each instance, by name.
        outcome: of the environment, which is lost.
    """

    what: str
    loss: str
    candidates: Callable[[], Mapping[str, LearnerEntry]]
    sized: Callable[[LearnerEntry, int, int], LearnerEntry]
    world: Callable[[int], Environment]
    value: str
    instances: Mapping[str, float]
    outcome: str = "pseudo_regret"


def _chosen(names: Sequence[str]) -> dict[str, LearnerEntry]:
    return {name: LEARNERS[name] for name in names if name in LEARNERS}


def _duelers() -> dict[str, LearnerEntry]:
    own = {name: entry for name, entry in LEARNERS.items() if entry.family == "dueling"}
    return {**_chosen(dueling_trust.learners()), **own}


def _sized_expert(entry: LearnerEntry, num_experts: int, horizon: int) -> LearnerEntry:
    return entry.sized(**{**dict.fromkeys(entry.sizes), "num_experts": num_experts, "horizon": horizon})


PROBLEMS = {
    "bandit": Problem(
        what="bandits with arms of 0 or 1",
        loss="regret",
        candidates=trust_models.arm_learners,
        sized=trust_models.sized,
        world=lambda size: bernoulli_bandit([0.75, *[0.5] * (size - 1)]),
        value="gap",
        instances={"easy": 0.25, "hard": 0.05},
    ),
    "duels": Problem(
        what="dueling bandits with utilities",
        loss="regret",
        candidates=_duelers,
        sized=dueling_regret.sized,
        world=lambda size: dueling.utility_duels(np.linspace(1, 0, size)),
        value="link_scale",
        instances={"easy": 8.0, "hard": 1.0},
    ),
    "experts": Problem(
        what="prediction from experts",
        loss="regret",
        candidates=lambda: _chosen(EXPERTS),
        sized=_sized_expert,
        world=lambda size: experts.stochastic_losses([0.25, *[0.5] * (size - 1)]),
        value="",
        instances={"one": math.nan},
    ),
}


def engine(learner: Learner) -> str:
    """What a learner is played by: counts, blocks or rounds."""
    return "counts" if learner.counts else "blocks" if learner.blocks else "rounds"


def seconds(learner: Learner, size: int, horizon: int, lanes: int) -> float:
    """About how long the rounds of a candidate take on one core. It is a guess of the order of magnitude."""
    return ROUND[engine(learner)] * max(1.0, size / 10) * horizon * lanes


def affordable(learners: Sequence[Learner], size: int, horizon: int, lanes: int) -> int:
    """The most rounds that every candidate can play, a round number, and not more than asked for."""
    slowest = max(seconds(learner, size, 1, lanes) for learner in learners)
    if slowest * horizon <= SECONDS_OF_A_CANDIDATE:
        return horizon
    most = max(SECONDS_OF_A_CANDIDATE / slowest, FEWEST_ROUNDS)
    scale = 10 ** math.floor(math.log10(most))
    return min(horizon, scale * next(step for step in (5, 2, 1) if step * scale <= most))


def run_of(problem: Problem, entry: LearnerEntry, size: int, horizons: Sequence[int], delta: float) -> Run:
    """A candidate's run at several horizons, each by a learner that knows it.

    Args:
        problem: which.
        entry: of the candidate.
        size: arms or experts.
        horizons: rounds; 0 where the candidate is too slow, whose loss there means nothing.
        delta: of claims that have one.
    """
    import jax.numpy as jnp

    fixed = {"delta": delta} if "delta" in entry.values else {}
    runs = []
    for rounds in horizons:
        if rounds:
            made = problem.sized(entry, size, rounds).make()
            how = engine(made)
            run = simulator(
                made, problem.world(size), rounds, checkpoints=[rounds], engine="auto" if how == "blocks" else how
            )
            runs.append(run)

    def simulate(key, params):
        losses = iter([run(key, own)[problem.outcome][-1] for run, own in zip(runs, params, strict=True)])
        return {"loss": jnp.stack([jnp.asarray(next(losses) if n else 0, jnp.float32) for n in horizons])}

    def params(**values: Any) -> Any:
        return tuple(run.params(**fixed, **values) for run in runs)

    return Run(
        simulate=simulate,
        params=params,
        guarantee=partial(runs[0].guarantee, **fixed),
        dims={"loss": ("horizon",)},
        coords={"horizon": list(range(len(horizons)))},
    )

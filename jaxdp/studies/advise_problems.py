"""The problems on which registered algorithms are compared: candidates, their instances, and how one is played."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxdp import dueling, experts
from jaxdp.bandits import bernoulli_bandit
from jaxdp.bandits.contextual import linear_contexts, linear_ucb, linear_ucb_joint
from jaxdp.core import Environment, Estimator, Learner
from jaxdp.estimation import gaussian_rewards, thurstone_rr
from jaxdp.registry import ESTIMATORS, LEARNERS, EstimatorEntry, LearnerEntry
from jaxdp.simulation import Run, estimation_run, simulator
from jaxdp.studies import comparison, dueling_trust, trust_models
from jaxdp.studies.ldp_best_arm import at_the_stop

Entry = LearnerEntry | EstimatorEntry
Algorithm = Learner | Estimator
Sizes = Mapping[str, int]  # by the names that `Problem.sizes` has

FAILURE_PROB = 0.05  # of learners that look for the best arm
FEATURE_NORM = 1.0
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
        sizes: of the problem, and what each is where nothing is said: `num_arms` (arms or experts), `dim`.
        horizon: rounds or labels, where nothing is said.
        candidates: () -> entries by name.
        sized: (entry, sizes, horizon) -> the entry for this problem and so many rounds or labels.
        play: (algorithm, sizes, horizon, instance) -> a run with the outputs "loss" and `shares`, each []. The
            instance is None where a value of the run tells it.
        seconds: (algorithm, sizes) -> of one core, about, for a round or label of a lane.
        instances: by name, what `play` is told, or the value of `value`.
        told: what the instances are, in a sentence.
        value: of the run, by which instances differ; "" where each is a program of its own.
        counted: what the horizon counts.
        shares: of runs, by output: how a table heads its column.
        fixed: values that candidates have if they take them.
        tile: lanes in a tile, at most.
    """

    what: str
    loss: str
    sizes: Sizes
    horizon: int
    candidates: Callable[[], Mapping[str, Any]]
    sized: Callable[[Any, Sizes, int], Entry]
    play: Callable[[Any, Sizes, int, Any], Run]
    seconds: Callable[[Any, Sizes], float]
    instances: Mapping[str, Any]
    told: str
    value: str = ""
    counted: str = "rounds"
    shares: Mapping[str, str] = {}
    fixed: Mapping[str, float] = {}
    tile: int = 256


# ---- candidates ------------------------------------------------------------------------------------------------------
def _chosen(names: Sequence[str]) -> dict[str, LearnerEntry]:
    return {name: LEARNERS[name] for name in names if name in LEARNERS}


def _duelers() -> dict[str, LearnerEntry]:
    own = {name: entry for name, entry in LEARNERS.items() if entry.family == "dueling"}
    return {**_chosen(dueling_trust.learners()), **own}


def _finders() -> dict[str, LearnerEntry]:
    """Those that stop at the best of binary arms, with the constants of their proofs."""
    return _without(("rewards", "constants"), lambda entry: entry.family == "bandits" and entry.make().done is not None)


def _linear() -> dict[str, LearnerEntry]:
    """Those for the linear model; how often they solve for it is for each to choose."""
    return _without(("update_every",), lambda entry: entry.factory in (linear_ucb, linear_ucb_joint))


def _without(keywords: Sequence[str], chosen: Callable[[LearnerEntry], bool]) -> dict[str, LearnerEntry]:
    """Learners that are chosen, without these keywords of their variants, and each once."""
    found: dict[str, LearnerEntry] = {}
    for name, entry in LEARNERS.items():
        if not chosen(entry):
            continue
        variant = {key: value for key, value in entry.variant.items() if key not in keywords}
        if all((entry.factory, variant) != (other.factory, other.variant) for other in found.values()):
            found[name] = dataclasses.replace(entry, variant=variant)
    return found


def _estimators() -> dict[str, EstimatorEntry]:
    """Those that claim something, for comparisons of two under the logistic model."""
    return {
        name: entry
        for name, entry in ESTIMATORS.items()
        if entry.proof != "none" and set(entry.sizes) == {"num_samples", "dim"} and entry.factory is not thurstone_rr
    }


# ---- sizes -----------------------------------------------------------------------------------------------------------
def _sized(entry: Entry, sizes: Sizes, horizon: int) -> Entry:
    """The entry at these sizes; others of it are for a tiny problem, and go to their defaults."""
    given = {**sizes, "num_experts": sizes.get("num_arms"), "num_samples": horizon, "horizon": horizon}
    own = {name: given.get(name) for name in entry.sizes}
    return entry.sized(**own, **({} if isinstance(entry, EstimatorEntry) or "horizon" in own else {"horizon": horizon}))


# ---- play ------------------------------------------------------------------------------------------------------------
def played_by(algorithm: Algorithm) -> str:
    """What an algorithm is played by: counts, blocks or rounds; an estimator has all labels at once."""
    if isinstance(algorithm, Estimator):
        return "labels"
    exactly = any(way.total is None for way in algorithm.blocks)  # as engine="auto" has it
    return "counts" if algorithm.counts else "blocks" if exactly else "rounds"


def _simulated(learner: Learner, world: Environment, rounds: int) -> Run:
    how = played_by(learner)
    return simulator(learner, world, rounds, checkpoints=[rounds], engine="auto" if how == "blocks" else how)


def _regret(learner: Learner, sizes: Sizes, rounds: int, instance: Any, *, world: Callable[..., Environment]) -> Run:
    del instance
    run = _simulated(learner, world(**sizes), rounds)
    return _told(run, lambda outputs: {"loss": outputs["pseudo_regret"][-1]})


def _stop(learner: Learner, sizes: Sizes, rounds: int, instance: float) -> Run:
    best, others = (1 + instance) / 2, (1 - instance) / 2
    run = _simulated(learner, bernoulli_bandit([best, *[others] * (sizes["num_arms"] - 1)]), rounds)
    return _told(at_the_stop(run), lambda outputs: {"loss": outputs["rounds"], **outputs})


def _estimate(estimator: Estimator, sizes: Sizes, labels: int, instance: float) -> Run:
    problem = gaussian_rewards(num_samples=labels, dim=sizes["dim"], feature_norm=FEATURE_NORM, parameter_norm=instance)
    run = estimation_run({"estimator": estimator}, problem)

    def told(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        (converged,), (certificate,) = outputs["converged"], outputs["certificate"]
        has_one = certificate != math.inf  # also NaN, of a minimisation that failed
        return {"loss": outputs["l2_error"][0], "unsolved": ~converged & has_one}

    return _told(run, told)


def _told(run: Run, told: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Run:
    return dataclasses.replace(run, simulate=lambda key, params: told(run.simulate(key, params)))


# ---- time ------------------------------------------------------------------------------------------------------------
def _of_arms(learner: Learner, sizes: Sizes, *, rounds: float = 500e-9) -> float:
    """Totals take no time a round, blocks little, and single rounds most."""
    return {"counts": 0.0, "blocks": 60e-9, "rounds": rounds}[played_by(learner)] * max(1.0, sizes["num_arms"] / 10)


def _of_contexts(learner: Learner, sizes: Sizes) -> float:
    del learner
    return 400e-9 * max(0.5, sizes["num_arms"] * sizes["dim"] / 100)


def _of_labels(estimator: Estimator, sizes: Sizes) -> float:
    del estimator
    return 200e-9 * max(1.0, sizes["dim"] / 5)


ONE_AHEAD = "one arm is the best, far ahead or close ahead, and all others are equal"
PROBLEMS = {
    "bandit": Problem(
        what="bandits with arms of 0 or 1",
        loss="regret",
        sizes={"num_arms": 10},
        horizon=10**6,
        candidates=trust_models.arm_learners,
        sized=lambda entry, sizes, horizon: comparison.sized(entry, sizes["num_arms"], horizon),
        play=partial(_regret, world=lambda num_arms: bernoulli_bandit([0.75, *[0.5] * (num_arms - 1)])),
        seconds=_of_arms,
        value="gap",
        instances={"easy": 0.25, "hard": 0.05},
        told=ONE_AHEAD,
    ),
    "best-arm": Problem(
        what="the best of arms of 0 or 1, found",
        loss="rounds until it stops",
        sizes={"num_arms": 10},
        horizon=10**6,
        candidates=_finders,
        sized=_sized,
        play=_stop,
        seconds=partial(_of_arms, rounds=40e-9),
        instances={"easy": 0.5, "hard": 0.1},
        told=f"{ONE_AHEAD}; a learner may err with probability {FAILURE_PROB:g}",
        shares={"censored": "cut off", "wrong": "wrong"},
        fixed={"failure_prob": FAILURE_PROB},
    ),
    "contextual": Problem(
        what="contextual linear bandits",
        loss="regret",
        sizes={"num_arms": 10, "dim": 5},
        horizon=10**5,
        candidates=_linear,
        sized=_sized,
        play=partial(
            _regret, world=lambda num_arms, dim: linear_contexts(num_arms=num_arms, dim=dim, rewards="binary")
        ),
        seconds=_of_contexts,
        value="theta_norm",
        instances={"easy": 0.9, "hard": 0.3},
        told="contexts are uniform on the sphere, rewards are 1 or -1, and follow the context closely or hardly",
    ),
    "duels": Problem(
        what="dueling bandits with utilities",
        loss="regret",
        sizes={"num_arms": 10},
        horizon=10**6,
        candidates=_duelers,
        sized=lambda entry, sizes, horizon: comparison.sized(entry, sizes["num_arms"], horizon),
        play=partial(_regret, world=lambda num_arms: dueling.utility_duels(np.linspace(1, 0, num_arms))),
        seconds=_of_arms,
        value="link_scale",
        instances={"easy": 8.0, "hard": 1.0},
        told="utilities are evenly spaced, and users are sure or unsure of them",
    ),
    "experts": Problem(
        what="prediction from experts",
        loss="regret",
        sizes={"num_arms": 10},
        horizon=10**6,
        candidates=lambda: _chosen(EXPERTS),
        sized=_sized,
        play=partial(_regret, world=lambda num_arms: experts.stochastic_losses([0.25, *[0.5] * (num_arms - 1)])),
        seconds=_of_arms,
        instances={"one": None},
        told="one expert loses 1/4 a round and all others 1/2; there is one instance",
    ),
    "labels": Problem(
        what="rewards from labels of comparisons",
        loss="l2 error of the reward parameter",
        sizes={"dim": 5},
        horizon=10**4,
        candidates=_estimators,
        sized=_sized,
        play=_estimate,
        seconds=_of_labels,
        instances={"sure": 8.0, "unsure": 1.0},
        told=f"features are normal, shrunk to the norm {FEATURE_NORM:g}; users are sure or unsure of what is better",
        counted="labels",
        shares={"unsolved": "not solved"},
        tile=16,  # whose data then stay near the cores' caches
    ),
}

SECONDS_OF_COMPILING = 10.0  # of a candidate, with tracing, on one core
SECONDS_OF_A_CANDIDATE = 10.0  # of one core, that its rounds may take
FEWEST_ROUNDS = 1000


def affordable(seconds: Sequence[float], horizon: int, lanes: int) -> int:
    """The most rounds that every candidate can play, a round number, and not more than asked for.

    Args:
        seconds: of each candidate, for a round of a lane.
        horizon: that is asked for.
        lanes: that are played.
    """
    slowest = max(seconds) * lanes
    if slowest * horizon <= SECONDS_OF_A_CANDIDATE:
        return horizon
    most = max(SECONDS_OF_A_CANDIDATE / slowest, FEWEST_ROUNDS)
    scale = 10 ** math.floor(math.log10(most))
    return min(horizon, scale * next(step for step in (5, 2, 1) if step * scale <= most))


def run_of(
    problem: Problem, entry: Entry, sizes: Sizes, horizons: Sequence[int], delta: float, instance: Any = None
) -> Run:
    """A candidate's run at several horizons, each by an algorithm that is made for it.

    Args:
        problem: which.
        entry: of the candidate.
        sizes: of the problem.
        horizons: rounds or labels; 0 where the candidate is too slow, whose outputs there mean nothing.
        delta: of claims that have one.
        instance: as `Problem.play` takes it.
    """
    import jax.numpy as jnp

    fixed = {name: value for name, value in {**problem.fixed, "delta": delta}.items() if _takes(entry, name)}
    names = ("loss", *problem.shares)
    runs = [
        problem.play(problem.sized(entry, sizes, rounds).make(), sizes, rounds, instance)
        for rounds in horizons
        if rounds
    ]

    def simulate(key, params):
        found = iter([run(key, own) for run, own in zip(runs, params, strict=True)])
        by_horizon = [next(found) if rounds else dict.fromkeys(names, 0) for rounds in horizons]
        return {name: jnp.stack([jnp.asarray(each[name], jnp.float32) for each in by_horizon]) for name in names}

    def params(**values: Any) -> Any:
        return tuple(run.params(**fixed, **values) for run in runs)

    return Run(
        simulate=simulate,
        params=params,
        guarantee=partial(runs[0].guarantee, **fixed),
        dims=dict.fromkeys(names, ("horizon",)),
        coords={"horizon": list(range(len(horizons)))},
    )


def _takes(entry: Entry, name: str) -> bool:
    return name in entry.values

"""The problems of `advise`, with their instances, the registered algorithms that are candidates, and their runs."""

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from jaxdp import dueling, experts
from jaxdp.bandits import bernoulli_bandit
from jaxdp.bandits.contextual import linear_contexts, linear_ucb, linear_ucb_joint
from jaxdp.core import Environment, Estimator, Learner, Visits, add_visits
from jaxdp.estimation import gaussian_rewards, thurstone_rr
from jaxdp.persons import with_unit
from jaxdp.registry import ESTIMATORS, LEARNERS, EstimatorEntry, LearnerEntry
from jaxdp.simulation import Run, estimation_run, simulator
from jaxdp.studies import advise_costs as costs
from jaxdp.studies import comparison, dueling_regret, dueling_trust, trust_models
from jaxdp.studies.advise_costs import Sizes
from jaxdp.studies.ldp_best_arm import keep_stopping_outputs

Entry = LearnerEntry | EstimatorEntry
Algorithm = Learner | Estimator

FAILURE_PROB = 0.05  # failure probability of learners that identify the best arm
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
        title: name of the problem in titles.
        loss: name of the loss in axis labels.
        sizes: default sizes keyed by name: `num_arms` (arms or experts), `dim`.
        horizon: default number of rounds or labels.
        candidates: function without arguments that returns entries keyed by name.
        play: function(algorithm, sizes, horizon, instance, scaled_rounds) that returns a run with the outputs "loss"
            and
            `shares`, each []. The instance is None if a parameter value of the run determines it. The result of
            `scaled_rounds` determines the engine.
        seconds: function(algorithm, sizes) that returns the approximate time in seconds, on one core, per round or
            label of a lane.
        instances: for each instance's name, the argument `instance` of `play`, or the value of the parameter `value`.
        instances_text: a description of the instances.
        value: name of the run's parameter in which instances differ; "" if each instance is a separate program.
        horizon_unit: the noun after the horizon, "rounds" or "labels".
        shares: table headings, by output name, of the outputs that are 0 or 1 in each run.
        fixed: parameter values that are fixed for all candidates with these parameters.
        visits: the schedule of people's visits if candidates have claims for a person; None if candidates have their
            registered claims.
        tile: maximum number of lanes in a tile on a CPU.
        first: names of candidates that start before all others, in this order: one that compiles quickly, so that its
            means are printed soon, then those that compile or run for long. Others are traced while these do so.
    """

    title: str
    loss: str
    sizes: Sizes
    horizon: int
    candidates: Callable[[], Mapping[str, Any]]
    play: Callable[[Any, Sizes, int, Any, float], Run]
    seconds: Callable[[Any, Sizes], float]
    instances: Mapping[str, Any]
    instances_text: str
    value: str = ""
    horizon_unit: str = "rounds"
    shares: Mapping[str, str] = {}
    fixed: Mapping[str, float] = {}
    visits: Visits | None = None
    tile: int = 256
    first: Sequence[str] = ()


# ---- candidates ------------------------------------------------------------------------------------------------------
def _select_registered(names: Sequence[str]) -> dict[str, LearnerEntry]:
    return {name: LEARNERS[name] for name in names if name in LEARNERS}


def _duelers() -> dict[str, LearnerEntry]:
    return {**_select_registered(dueling_trust.learners()), **dueling_regret.duel_learners()}


def _finders() -> dict[str, LearnerEntry]:
    """Returns learners that stop when they identify the best of binary arms, with the constants of their proofs."""
    finders = comparison.distinct_learners(
        ("rewards", "constants"),
        lambda entry: entry.family == "bandits" and "failure_prob" in entry.values and entry.make().done is not None,
    )
    return {name: finders[name] for name in sorted(finders, key=lambda name: not name.startswith("pairwise"))}


def _linear() -> dict[str, LearnerEntry]:
    """Returns learners for the linear model, each with its default schedule of model updates."""
    return comparison.distinct_learners(
        ("update_every",), lambda entry: entry.factory in (linear_ucb, linear_ucb_joint)
    )


def _estimators() -> dict[str, EstimatorEntry]:
    """Returns estimators that have a privacy claim and learn from labels of pairs under the logistic model."""
    return {
        name: entry
        for name, entry in ESTIMATORS.items()
        if entry.proof != "none" and set(entry.sizes) == {"num_samples", "dim"} and entry.factory is not thurstone_rr
    }


# ---- play ------------------------------------------------------------------------------------------------------------
def _simulator(learner: Learner, world: Environment, rounds: int, scaled_rounds: float, **options: Any) -> Run:
    name = costs.engine_of(learner, scaled_rounds)
    engine = name if name in ("counts", "rounds") else "auto"
    return simulator(learner, world, rounds, checkpoints=[rounds], engine=engine, **options)


def _regret(
    learner: Learner,
    sizes: Sizes,
    rounds: int,
    instance: Any,
    scaled_rounds: float,
    *,
    world: Callable[..., Environment],
    visits: Visits | None = None,
) -> Run:
    del instance
    outcomes = ["pseudo_regret"] if visits else None
    run = _simulator(learner, add_visits(world(**sizes), visits), rounds, scaled_rounds, outcomes=outcomes)
    return _with_outputs(run, lambda outputs: {"loss": outputs["pseudo_regret"][-1]})


def _stop(learner: Learner, sizes: Sizes, rounds: int, instance: Any, scaled_rounds: float) -> Run:
    """Returns a learner's run on Bernoulli arms with the outputs of a stopping time; "loss" is the number of rounds.

    `instance` has the means of the arms. If it is not a tuple, the run's value `gap` is the best mean minus the common
    mean of all other arms.
    """
    has_means = isinstance(instance, tuple)
    means = list(instance) if has_means else [0.75, *[0.25] * (sizes["num_arms"] - 1)]
    run = _simulator(learner, bernoulli_bandit(means), rounds, scaled_rounds)

    def params(**values: Any) -> Any:
        return run.params(**values) if has_means else run.params(**values, best_mean=(1 + values["gap"]) / 2)

    outputs = _with_outputs(keep_stopping_outputs(run), lambda outputs: {"loss": outputs["rounds"], **outputs})
    return dataclasses.replace(outputs, params=params)


def _estimate(estimator: Estimator, sizes: Sizes, labels: int, instance: Any, scaled_rounds: float) -> Run:
    del instance, scaled_rounds
    problem = gaussian_rewards(num_samples=labels, dim=sizes["dim"], feature_norm=FEATURE_NORM)
    run = estimation_run({"estimator": estimator}, problem)

    def losses(outputs: Mapping[str, Any]) -> Mapping[str, Any]:
        (converged,), (certificate,) = outputs["converged"], outputs["certificate"]
        has_certificate = certificate != math.inf  # True also for NaN, which marks a failed minimisation
        return {"loss": outputs["l2_error"][0], "unsolved": ~converged & has_certificate}

    return _with_outputs(run, losses)


def _with_outputs(run: Run, outputs: Callable[[Mapping[str, Any]], Mapping[str, Any]]) -> Run:
    return dataclasses.replace(run, simulate=lambda key, params: outputs(run.simulate(key, params)))


ONE_AHEAD = "one arm is the best, by a large or a small gap, and all others are equal"
PROBLEMS = {
    "bandit": Problem(
        title="bandits with binary arms",
        loss="regret",
        sizes={"num_arms": 10},
        horizon=10**6,
        candidates=trust_models.arm_learners,
        play=partial(_regret, world=lambda num_arms: bernoulli_bandit([0.75, *[0.5] * (num_arms - 1)])),
        seconds=costs.seconds_of_arms,
        value="gap",
        instances={"easy": 0.25, "hard": 0.05},
        instances_text=ONE_AHEAD,
    ),
    "best-arm": Problem(
        title="identifying the best of binary arms",
        loss="rounds until it stops",
        sizes={"num_arms": 10},
        horizon=10**6,
        candidates=_finders,
        play=_stop,
        seconds=partial(costs.seconds_of_arms, rounds=40e-9),
        value="gap",
        instances={"easy": 0.5, "hard": 0.1},
        instances_text=f"{ONE_AHEAD}; a learner may err with probability {FAILURE_PROB:g}",
        shares={"censored": "cut off", "wrong": "wrong"},
        fixed={"failure_prob": FAILURE_PROB},
    ),
    "contextual": Problem(
        title="contextual linear bandits",
        loss="regret",
        sizes={"num_arms": 10, "dim": 5},
        horizon=10**5,
        candidates=_linear,
        play=partial(
            _regret, world=lambda num_arms, dim: linear_contexts(num_arms=num_arms, dim=dim, rewards="binary")
        ),
        seconds=costs.seconds_of_contexts,
        value="theta_norm",
        instances={"easy": 0.9, "hard": 0.3},
        instances_text="contexts are uniform on the sphere, rewards are 1 or -1, and depend on the context strongly "
        "or weakly",
    ),
    "duels": Problem(
        title="dueling bandits with utilities",
        loss="regret",
        sizes={"num_arms": 10},
        horizon=10**6,
        candidates=_duelers,
        play=partial(_regret, world=lambda num_arms: dueling.utility_duels(np.linspace(1, 0, num_arms))),
        seconds=costs.seconds_of_duels,
        value="link_scale",
        instances={"easy": 8.0, "hard": 1.0},
        instances_text="utilities are evenly spaced, and users are sure or unsure of them",
        first=(
            "ebs_local",
            "double_thompson_blocks",
            "double_thompson",
            "ebs_elimination",
            "ebs_elimination_gaussian",
        ),
    ),
    "experts": Problem(
        title="prediction from experts",
        loss="regret",
        sizes={"num_arms": 10},
        horizon=10**6,
        candidates=lambda: _select_registered(EXPERTS),
        play=partial(_regret, world=lambda num_arms: experts.stochastic_losses([0.25, *[0.5] * (num_arms - 1)])),
        seconds=costs.seconds_of_arms,
        instances={"one": None},
        instances_text="one expert loses 1/4 per round and all others lose 1/2; there is one instance",
    ),
    "labels": Problem(
        title="rewards from labels of comparisons",
        loss="l2 error of the reward parameter",
        sizes={"dim": 5},
        horizon=10**4,
        candidates=_estimators,
        play=_estimate,
        seconds=costs.seconds_of_labels,
        value="parameter_norm",
        instances={"sure": 8.0, "unsure": 1.0},
        instances_text=f"features are normal, scaled down to norm {FEATURE_NORM:g}; users are sure or unsure of the "
        "better item",
        horizon_unit="labels",
        shares={"unsolved": "not solved"},
        tile=16,  # at the default sizes, the data of 16 lanes are about as large as the caches
    ),
}


def with_means(problem: Problem, means: tuple[float, ...]) -> Problem:
    """Returns the problem "best-arm" with the only instance `means`, and with 10^9 rounds by default."""
    text = f"means {', '.join(f'{mean:g}' for mean in means)}; a learner may err with probability {FAILURE_PROB:g}"
    return problem._replace(horizon=10**9, value="", instances={"your": means}, instances_text=text)


def with_people(problem: Problem, visits: Visits) -> Problem:
    """Returns `problem` with people who participate several times, in the order of the schedule `visits`."""
    assert isinstance(problem.play, partial)

    def seconds_of_heard(learner: Learner, sizes: Sizes) -> float:
        seconds = problem.seconds(learner, sizes)
        if costs.engine_of(learner) != "heard rounds":
            return seconds
        assert learner.reports is not None
        return seconds * visits.num_heard(learner.reports) / len(visits)

    return problem._replace(
        horizon=len(visits), play=partial(problem.play, visits=visits), seconds=seconds_of_heard, visits=visits
    )


def algorithm_of(problem: Problem, entry: Entry, sizes: Sizes, rounds: int, reports: int = 0) -> Algorithm:
    """Returns an entry's algorithm for a problem with these sizes and this number of rounds.

    If the problem has people who participate several times, the algorithm uses `reports` visits of each person.
    """
    if problem.visits is None:
        return comparison.resize(entry, rounds, **sizes).make()
    heard = problem.visits.num_heard(reports, rounds)
    return with_unit(comparison.resize(entry, heard, **sizes).make(), "person", reports)


def run_of(
    problem: Problem,
    entry: Entry,
    sizes: Sizes,
    horizons: Sequence[int],
    delta: float,
    instance: Any = None,
    *,
    reports: int = 0,
    lanes: int = 1,
) -> Run:
    """Returns a candidate's run at several horizons, with a separate algorithm for each horizon.

    A horizon of 0 means that the candidate is too slow; the outputs at this horizon are meaningless. `instance` is the
    argument of `Problem.play`. If people participate several times, the algorithm uses `reports` visits of each person.
    The engine depends on `lanes`, the number of lanes of the sweep.
    """
    import jax.numpy as jnp

    fixed = {name: value for name, value in {**problem.fixed, "delta": delta}.items() if name in entry.values}
    names, scaled_rounds = ("loss", *problem.shares), costs.scaled_rounds(sizes, lanes, max(horizons))
    runs = [
        problem.play(algorithm_of(problem, entry, sizes, rounds, reports), sizes, rounds, instance, scaled_rounds)
        for rounds in horizons
        if rounds
    ]

    def simulate(key, params):
        outputs = iter([run(key, run_params) for run, run_params in zip(runs, params, strict=True)])
        by_horizon = [next(outputs) if rounds else dict.fromkeys(names, 0) for rounds in horizons]
        return {name: jnp.stack([jnp.asarray(values[name], jnp.float32) for values in by_horizon]) for name in names}

    def params(**values: Any) -> Any:
        return tuple(run.params(**fixed, **values) for run in runs)

    return Run(
        simulate=simulate,
        params=params,
        guarantee=partial(runs[0].guarantee, **fixed),
        dims=dict.fromkeys(names, ("horizon",)),
        coords={"horizon": list(range(len(horizons)))},
    )

"""Determines the heard rounds, from which a learner made by `per_person` gets a report."""

from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Guarantee, Learner, Space, Visits
from jaxdp.validation import warn_caller

NEXT_HEARD = "next_heard"  # name of the table among a run's parameters
FEW = 100  # heard rounds of an arm: the mean of 100 binary rewards has a standard error of at most 0.05


def rounds_heard(learner: Learner, environment: Environment, horizon: int) -> int:
    """Returns the number of heard rounds.

    All rounds are heard if `learner.reports` is None, and otherwise the first `reports` visits of each person.

    Raises:
        ValueError: if the learner needs visits and the environment has no visits, or other visits than the learner.
    """
    if learner.visits is not None and not learner.visits.is_same(environment.visits):
        raise ValueError(
            f"environment must have the visits of the learner, {learner.visits!r}: make it with visits=, got "
            f"{environment!r}"
        )
    if learner.reports is None:
        return horizon
    if environment.visits is None:
        raise ValueError(
            "environment must have visits for a learner by per_person, for example bernoulli_bandit(means, "
            f"visits=jaxdp.Visits.random(people=..., each=...)), got {environment!r}"
        )
    return environment.visits.num_heard(learner.reports, horizon)


def next_heard_rounds(learner: Learner, environment: Environment, horizon: int) -> np.ndarray:
    """Returns the first heard round at or after each round, [horizon + 1] int32; the horizon if there is none."""
    assert learner.reports is not None
    assert environment.visits is not None
    heard = np.flatnonzero(environment.visits.nth[:horizon] < learner.reports)
    index = np.searchsorted(heard, np.arange(horizon + 1))
    return np.append(heard, horizon).astype(np.int32)[index]


def check_unheard(environment: Environment, params: Any, world: Any, action: Any, selected: Collection[str]) -> None:
    """Raises a ValueError if the environment cannot sum a selected outcome over rounds that are not heard."""
    assert environment.unheard is not None
    rounds = jnp.zeros((), jnp.result_type(int))
    _, totals = jax.eval_shape(environment.unheard, params["environment"], world, action, rounds)
    drawn = [name for name in selected if name not in totals]
    if drawn:
        raise ValueError(
            f"outcomes must be a list of some of {', '.join(totals)} with engine='heard', which does not play the "
            f"rounds in which others are drawn, got {', '.join(drawn)}: give engine='rounds', or name them in "
            "Environment.drawn, so that engine='auto' plays rounds"
        )


def warn_few_heard(learner: Learner, environment: Environment, horizon: int, heard: int) -> None:
    """Warns if a learner by `per_person` hears too few rounds, or expects more reports than any person has visits."""
    if learner.reports is None or environment.visits is None:
        return
    most_visits = environment.visits.most
    if learner.reports > most_visits:
        warn_caller(
            f"{learner!r} divides its budget among {learner.reports} reports of a person, and nobody comes more than "
            f"{most_visits} times: give reports={most_visits}"
        )
    space = None if learner.interface is None else learner.interface.action
    num_arms = space.high + 1 if isinstance(space, Space) and space.kind == "integers" else 1
    needed = max(learner.min_horizon, int(FEW * num_arms))
    if heard < needed:
        warn_caller(
            f"{learner!r} hears {heard} of {horizon} rounds, and needs about {needed}: give it more people, or more "
            "reports of each person, which cost privacy or noise"
        )


def warn_returning_people(visits: Visits, claim: Guarantee) -> None:
    """Warns if a person may participate in several rounds, but the claim covers only one round."""
    if visits.most > 1 and claim.is_private and claim.unit == "record":
        warn_caller(
            f"the claim, {claim}, is for one round, and a person comes up to {visits.most} times: jaxdp.per_person "
            "makes a learner with a claim for a person"
        )

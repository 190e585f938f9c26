"""The optimistic learners for linear models that studies compare."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import xarray as xr

from jaxdp.bandits.contextual import linear_ucb, linear_ucb_joint
from jaxdp.core import Learner
from jaxdp.simulation import Run
from jaxdp.studies.arguments import fixed_delta
from jaxdp.studies.comparison import select_names
from jaxdp.theory.contextual import joint_linear_order, linear_order
from jaxdp.theory.ldp_bandits import CLAIMED

PUBLISHED = 1.5  # the published noise is proved to suffice only for epsilon below this number


class Kind(NamedTuple):
    """A learner of the study.

    Attributes:
        label: text in legends and tables.
        factory: function(num_arms, dim, horizon, **variant) that returns a learner.
        variant: keywords of the factory.
        rounds: the claimed exponent of T.
        order: function(epsilon, delta, T, d) that returns a regret bound up to a constant factor.
        is_pure: whether the learner's claim is pure; such a learner takes no delta.
    """

    label: str
    factory: Callable[..., Learner]
    variant: Mapping[str, Any]
    rounds: float
    order: Callable[..., Any]
    is_pure: bool = False

    def make(self, num_arms: int, dim: int, horizon: int) -> Learner:
        """Makes the learner with these sizes."""
        return self.factory(num_arms=num_arms, dim=dim, horizon=horizon, **self.variant)


LOCAL = CLAIMED["linear"].rounds
corrected_order = partial(linear_order, corrected=True)
LEARNERS = {
    "paper": Kind("local: constants as published", linear_ucb, {"constants": "paper"}, LOCAL, linear_order),
    "gaussian": Kind("local: Gaussian reports", linear_ucb, {}, LOCAL, corrected_order),
    "ball": Kind("local: reports on a sphere", linear_ucb, {"report": "l2_ball"}, LOCAL, corrected_order, is_pure=True),
    "joint": Kind("joint: one counter", linear_ucb_joint, {}, 0.5, joint_linear_order),
}


def check_learners(learner: Sequence[str]) -> list[str]:
    """Returns the given names without duplicates, or all names if none is given; raises ValueError for unknown ones."""
    return list(dict.fromkeys(select_names(learner, LEARNERS)))


def labels_of(results: xr.Dataset) -> dict[str, str]:
    """Returns the learners' labels in legends and tables."""
    return {str(name): LEARNERS[str(name)].label for name in results.learner.values}


def bind_delta(run: Run, name: str, delta: float, num_records: int) -> Run:
    """Returns the run after fixing its delta, if the learner takes a delta.

    For "paper", finite epsilons that the learner rejects are reduced to just below `PUBLISHED`; `are_refused` marks
    them, so that their results can be dropped.

    Args:
        run: the learner's run.
        name: the learner's name.
        delta: in (0, 1).
        num_records: number of rounds; a delta above 1 / num_records causes a warning.
    """
    fixed_values = fixed_delta(() if LEARNERS[name].is_pure else ("delta",), delta, num_records)
    largest = math.nextafter(PUBLISHED, 0) if name == "paper" else math.inf

    def lower(epsilon: float) -> float:
        return epsilon if epsilon == math.inf else min(epsilon, largest)

    def params(*, epsilon: float) -> Any:
        return run.params(epsilon=lower(epsilon), **fixed_values)

    def guarantee(*, epsilon: float) -> Any:
        return run.guarantee(epsilon=lower(epsilon), **fixed_values)

    return replace(run, params=params, guarantee=guarantee)


def are_refused(names: Sequence[str], epsilon: Sequence[float]) -> xr.DataArray:
    """Returns whether a learner's privacy is not proved at an epsilon: bool with dimensions (learner, epsilon)."""
    refused = [[name == "paper" and PUBLISHED <= float(e) < math.inf for e in epsilon] for name in names]
    return xr.DataArray(refused, dims=("learner", "epsilon"))

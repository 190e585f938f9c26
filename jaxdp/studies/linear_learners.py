"""The optimistic learners of linear models that studies compare."""

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
from jaxdp.studies.comparison import chosen
from jaxdp.theory.contextual import joint_linear_order, linear_order
from jaxdp.theory.ldp_bandits import CLAIMED

PUBLISHED = 1.5  # epsilon, below which the published noise is proved to be enough


class Kind(NamedTuple):
    """A learner of the study.

    Attributes:
        label: in legends and tables.
        factory: (num_arms, dim, horizon, **variant) -> Learner.
        variant: keywords of the factory.
        rounds: the exponent of T that is claimed.
        order: (epsilon, delta, T, d) -> the order of the regret.
        is_pure: whether it takes no delta.
    """

    label: str
    factory: Callable[..., Learner]
    variant: Mapping[str, Any]
    rounds: float
    order: Callable[..., Any]
    is_pure: bool = False

    def make(self, num_arms: int, dim: int, horizon: int) -> Learner:
        """The learner of this size."""
        return self.factory(num_arms=num_arms, dim=dim, horizon=horizon, **self.variant)


LOCAL = CLAIMED["linear"].rounds
corrected = partial(linear_order, corrected=True)
LEARNERS = {
    "paper": Kind("local: constants as published", linear_ucb, {"constants": "paper"}, LOCAL, linear_order),
    "gaussian": Kind("local: Gaussian reports", linear_ucb, {}, LOCAL, corrected),
    "ball": Kind("local: reports on a sphere", linear_ucb, {"report": "l2_ball"}, LOCAL, corrected, is_pure=True),
    "joint": Kind("joint: one counter", linear_ucb_joint, {}, 0.5, joint_linear_order),
}


def check_learners(learner: Sequence[str]) -> list[str]:
    """Names of learners, each once; all of them if none is given.

    Raises:
        ValueError: if there is no learner of such a name.
    """
    return list(dict.fromkeys(chosen(learner, LEARNERS)))


def labels_of(results: xr.Dataset) -> dict[str, str]:
    """Learners' texts in legends and tables."""
    return {str(name): LEARNERS[str(name)].label for name in results.learner.values}


def at_delta(run: Run, name: str, delta: float, num_records: int) -> Run:
    """The run of a learner with this delta, if it takes one; at budgets that the learner refuses it plays at less.

    Args:
        run: of the learner.
        name: of the learner.
        delta: in (0, 1).
        num_records: rounds; a delta above one over it is warned of.
    """
    fixed = fixed_delta(() if LEARNERS[name].is_pure else ("delta",), delta, num_records)
    largest = math.nextafter(PUBLISHED, 0) if name == "paper" else math.inf

    def cut(epsilon: float) -> float:
        return epsilon if epsilon == math.inf else min(epsilon, largest)

    def params(*, epsilon: float) -> Any:
        return run.params(epsilon=cut(epsilon), **fixed)

    def guarantee(*, epsilon: float) -> Any:
        return run.guarantee(epsilon=cut(epsilon), **fixed)

    return replace(run, params=params, guarantee=guarantee)


def refused(name: str, epsilon: float) -> bool:
    """Whether the learner has no proof at this budget."""
    return name == "paper" and PUBLISHED <= epsilon < math.inf

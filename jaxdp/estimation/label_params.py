"""Values and claims of the estimators that use exact labels, or labels after randomized response."""

from dataclasses import replace

import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Guarantee, Scalar, leaf_rounded_down, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation.constraints import radius_leaf
from jaxdp.estimation.persons import PERSON, person_budgets
from jaxdp.validation import check_above, check_epsilon

TOLERANCE = 1e-5  # float32 resolves a mean gradient to about 1e-7 sqrt(dim)


@pytree_dataclass
class Params:
    """Values that a sweep may vary.

    Attributes:
        epsilon: [] float > 0, budget of the randomized response, or [num_samples] budgets from `person_params`; at
            infinity the labels themselves are reported.
        radius: [] float > 0, bound B on the parameter's norm; infinity means no bound.
        tolerance: [] float > 0, maximum norm of the projected gradient of the mean objective at a converged point, for
            features scaled to a root mean square in [1, 2). In 32-bit mode, rounding may keep this norm at about 1e-7
            sqrt(dim).
    """

    epsilon: Scalar
    radius: Scalar
    tolerance: Scalar


def make_params(*, epsilon: float, radius: float = np.inf, tolerance: float = TOLERANCE) -> Params:
    """Checks the values of a grid point and builds its `Params`; estimators of randomized labels use it as `params`."""
    return Params(
        epsilon=leaf_rounded_down("epsilon", check_epsilon(epsilon)),
        radius=radius_leaf(radius),
        tolerance=scalar_leaf("tolerance", check_above("tolerance", tolerance, 0.0)),
    )


def person_params(
    *, epsilon: float, persons: ArrayLike, radius: float = np.inf, tolerance: float = TOLERANCE
) -> Params:
    """Checks the values of a grid point and builds its `Params`; each label of a person with k labels gets epsilon / k.

    `persons` are the [num_samples] public ids of the persons who gave the labels.
    """
    point = make_params(epsilon=epsilon, radius=radius, tolerance=tolerance)
    return replace(point, epsilon=person_budgets(check_epsilon(epsilon), persons))


def clear_labels_claim() -> Guarantee:
    """Returns the empty claim of the non-private estimators."""
    return Guarantee.none(
        trust_model="central",
        privacy_unit="one label",
        argument="none: the labels are used as they are, and the estimate is released without noise",
    )


def randomized_labels_claim(epsilon: float) -> Guarantee:
    """Returns the claim of estimators that use labels only through randomized response."""
    return Guarantee.pure(
        epsilon,
        trust_model="local",
        privacy_unit="one label",
        argument="none: epsilon is infinite, and labels are reported as they are"
        if np.isinf(epsilon)
        else "each label leaves its user through randomized response at epsilon; the rest is post-processing",
    )


def randomized_persons_claim(epsilon: float) -> Guarantee:
    """Returns the claim of estimators that use a person's k labels through randomized response at epsilon / k each."""
    argument = "a person's k labels leave the device through randomized response at epsilon / k each, and compose"
    claim = randomized_labels_claim(epsilon)
    return replace(claim, privacy_unit=PERSON, unit="person", argument=argument if claim.is_private else claim.argument)

"""The reward heads to compare, their scores on held-out comparisons, and the head that is written to a file."""

from collections.abc import Callable
from functools import cache
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy.special import expit

from jaxdp.core import Estimator, default_float
from jaxdp.estimation import (
    Estimate,
    ReleasedHead,
    debiased_rr,
    estimate,
    mle,
    objective_perturbation,
    objective_perturbation_full,
    predicted_margin_errors,
    predicted_ridge,
)
from jaxdp.estimation.large import block_lengths
from jaxdp.estimation.persons import person_index
from jaxdp.studies.pair_data import Part

MECHANISMS = ("randomized_response", "gaussian", "k_norm")
BINS = 10  # number of groups for the calibration error
CLEAR, LOCAL, LOCAL_PERSON = "clear", "local", "local, per person"
ISOTROPIC, ISOTROPIC_PERSON = "central, isotropic", "central, isotropic, per person"
WHITENED, WHITENED_PERSON = "central, whitened", "central, whitened, per person"
FULL = "central, features private"


class Head(NamedTuple):
    """An estimator with its data and its parameter values, which depend on epsilon.

    Attributes:
        estimator: the estimator.
        part: the training comparisons.
        values: function from epsilon to the estimator's parameter values, keyed by name.
    """

    estimator: Estimator
    part: Part
    values: Callable[[float], dict[str, Any]]

    def fit(self, key: jax.Array, epsilon: float) -> Estimate:
        """Fits the head to its comparisons at this epsilon, with privacy noise from the key."""
        values = self.values(epsilon)
        if self.estimator.large is None:
            return estimate(
                self.estimator, self.part.features, self.part.labels, key=key, offset=self.part.offset, **values
            )
        # `large` fits in blocks of rows, so the same compiled program serves any number of rows.
        params = self.estimator.params(**values)
        labels = jnp.asarray(self.part.labels, default_float())
        return self.estimator.large(key, params, self.part.features, labels, offset=self.part.offset)


def heads(
    part: Part, *, delta: float, margin_stddev: float, feature_norm: float | None, has_persons: bool
) -> dict[str, Head]:
    """Returns the heads to compare, keyed by name.

    Heads per person are included if `has_persons`, and the head with private features if `feature_norm` is given.
    `margin_stddev` is a guess of the margins' standard deviation, made without labels.
    """
    persons = {"persons": part.persons}
    reach = float(block_lengths(part.features, person_index(part.persons)).max()) if has_persons else None

    def budget(epsilon: float) -> dict[str, Any]:
        return {"epsilon": epsilon, "delta": delta}

    def local(epsilon: float) -> dict[str, Any]:
        return {"epsilon": epsilon, "radius": radius}

    def shaped_values(epsilon: float) -> dict[str, Any]:
        return budget(epsilon) | {"margin_stddev": margin_stddev}

    @cache
    def isotropic(epsilon: float, sensitivity: float | None = None) -> dict[str, Any]:
        ridge = predicted_ridge(
            part.features, epsilon=epsilon, delta=delta, sensitivity=sensitivity, margin_stddev=margin_stddev
        )
        return budget(epsilon) | {"regularization": ridge}

    radius = local_radius(part, margin_stddev)
    shaped = objective_perturbation(geometry="whitened")
    table = {
        CLEAR: Head(mle(), part, lambda _: {}),
        LOCAL: Head(debiased_rr(), part, local),
        ISOTROPIC: Head(objective_perturbation(), part, isotropic),
        WHITENED: Head(shaped, part, shaped_values),
    }
    if has_persons:
        by_person = objective_perturbation(geometry="whitened", weights="cut", privacy_unit="person")
        table |= {
            LOCAL_PERSON: Head(debiased_rr(privacy_unit="person"), part, lambda epsilon: local(epsilon) | persons),
            ISOTROPIC_PERSON: Head(
                objective_perturbation(privacy_unit="person"), part, lambda epsilon: isotropic(epsilon, reach) | persons
            ),
            WHITENED_PERSON: Head(by_person, part, lambda epsilon: shaped_values(epsilon) | persons),
        }
    if feature_norm is not None:
        values = {"feature_norm": feature_norm}
        table[FULL] = Head(objective_perturbation_full(), part, lambda epsilon: budget(epsilon) | values)
    return table


def local_radius(part: Part, margin_stddev: float) -> float:
    """Returns the radius of local heads: twice the norm with which margins have standard deviation `margin_stddev`.

    This norm is for a theta of random direction and for the features of `part`.
    """
    return 2 * margin_stddev * float(np.sqrt(part.features[0].size / np.mean(np.sum(part.features**2, axis=1))))


class Score(NamedTuple):
    """Scores of a head on held-out comparisons.

    Attributes:
        right: [num_samples], 1 if the margin's sign agrees with the label, 0 if it does not, and 1/2 if the label is a
            tie or the margin is 0; NaN if theta is NaN.
        losses: [num_samples] logistic losses.
        calibration_error: mean absolute difference between the mean label and the mean predicted probability, over at
            most ten groups. The groups have about equal sizes and are formed in the order of the margins.
    """

    right: np.ndarray
    losses: np.ndarray
    calibration_error: float

    @property
    def accuracy(self) -> float:
        """The mean of `right`."""
        return float(self.right.mean())

    @property
    def log_loss(self) -> float:
        """The mean of `losses`."""
        return float(self.losses.mean())


def score(theta: np.ndarray, part: Part) -> Score:
    """Scores a head on comparisons; theta is the head's parameter, [dim]."""
    margins, labels = part.features.astype(float) @ theta, part.labels.astype(float)
    margins = margins if part.offset is None else margins + part.offset
    first_wins = (np.sign(margins) + 1) / 2  # NaN if theta is NaN
    right = first_wins * labels + (1 - first_wins) * (1 - labels)
    groups = np.array_split(np.argsort(margins, kind="stable"), min(BINS, len(margins)))
    gaps = [len(rows) * abs(labels[rows].mean() - expit(margins[rows]).mean()) for rows in groups]
    with np.errstate(invalid="ignore"):
        losses = np.logaddexp(0, margins) - labels * margins
    return Score(right, losses, float(sum(gaps) / len(margins)))


def person_error(values: np.ndarray, persons: np.ndarray) -> float:
    """Returns the standard error of the mean of `values` [num_samples], clustered by person.

    `persons` gives, for each row, the id of the person who gave it. Rows of one person may be dependent, but different
    persons are independent. The result is NaN if there is only one person.
    """
    _, index = np.unique(persons, return_inverse=True)
    sums = np.bincount(index, values - values.mean())
    count = len(sums)
    return float(np.sqrt(count / (count - 1) * np.sum(sums**2)) / len(values)) if count > 1 else np.nan


def predictions(
    part: Part, epsilon: float, delta: float, margin_stddev: float, *, per_person: bool
) -> dict[str, float]:
    """Returns the predicted margin error of a head for each of `MECHANISMS`, computed from public features and ids.

    Epsilon protects all labels of one person if `per_person`, and otherwise one label.
    """
    persons = part.persons if per_person else None
    errors = predicted_margin_errors(
        part.features, epsilon=epsilon, delta=delta, margin_stddev=margin_stddev, persons=persons
    )
    return {name: errors[name] for name in MECHANISMS}


def release(
    key: jax.Array, part: Part, mechanism: str, epsilon: float, delta: float, margin_stddev: float, *, per_person: bool
) -> ReleasedHead:
    """Fits the head that is written to a file; its claim is for one person if `per_person`, or else for one label."""
    unit = "person" if per_person else "label"
    values: dict[str, Any] = {"epsilon": epsilon} | ({"persons": part.persons} if per_person else {})
    if mechanism == "randomized_response":
        estimator = debiased_rr(privacy_unit=unit)
        values["radius"] = local_radius(part, margin_stddev)
    else:
        estimator = objective_perturbation(
            geometry="whitened",
            weights="cut",
            noise=mechanism,
            privacy_unit=unit,
            max_dim=part.features.shape[1],
        )
        values |= {"margin_stddev": margin_stddev} | ({"delta": delta} if mechanism == "gaussian" else {})
    fit = Head(estimator, part, lambda _: values).fit(key, epsilon)
    return ReleasedHead(np.asarray(fit.theta), bool(fit.converged), estimator.guarantee(**values))

"""All labels of one person as the unit of privacy: sensitivities of sums, budgets of reports, and claims."""

import dataclasses
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpy.typing import ArrayLike, DTypeLike

from jaxdp.checks import check_made
from jaxdp.core import Estimator, Guarantee
from jaxdp.preferences.persons import budget_shares, count_labels
from jaxdp.validation import check_choice

PRIVACY_UNITS = ("label", "person")
PERSON = "one person"
_LARGEST_GRAM = 4096  # maximum number of labels of one person for which the bound from inner products is computed
_SLACK = 1 + 1e-9  # covers the rounding of sums and eigenvalues in float64


class UnitClaims(NamedTuple):
    """The claims of one release for one label, and for all labels of one person.

    Attributes:
        label: the claim for one label.
        person: the claim for one person, which may be empty.
        most_labels: the maximum number of labels of one person.
    """

    label: Guarantee
    person: Guarantee
    most_labels: int

    def __str__(self) -> str:
        return f"{self.label}\n{self.person} (up to {self.most_labels} labels)"


def claims_for_persons(estimator: Estimator, persons: ArrayLike, **values: Any) -> UnitClaims:
    """Returns the claims of an estimator's release for one label and for all labels of one person.

    A claim for one label also protects a person with k labels, as a group: at k epsilon and, in the central model,
    delta * (e^(k epsilon) - 1) / (e^epsilon - 1). With many labels this delta exceeds 1, and the claim is empty.
    Estimators made with `privacy_unit="person"` claim epsilon for a person directly.

    Args:
        estimator: the estimator.
        persons: [num_samples] public ids, integers or text, of the persons who gave the labels.
        **values: the values that the estimator's `params` take.

    Returns:
        Both claims. For `privacy_unit="person"` in the central model, the claim for one label equals the claim for one
        person; this claim is valid, but need not be tight. In the local model, a label's epsilon is the person's
        epsilon, divided by the minimum number of labels per person.

    Raises:
        ValueError: if estimator is not an `Estimator`, persons are not a vector of at least one id, or a value is
            out of range.
        TypeError: if a value is missing, or the estimator does not take it.

    Examples:
        >>> from jaxdp.estimation import debiased_rr, objective_perturbation
        >>> print(claims_for_persons(objective_perturbation(), [1, 1, 1, 2], epsilon=1.0, delta=1e-6))
        (1, 1e-06)-DP (rounding: delta 5e-08), central, one label
        (3, 1.11073e-05)-DP (rounding: delta 6e-07), central, one person (up to 3 labels)
        >>> print(claims_for_persons(debiased_rr(privacy_unit="person"), [1, 1, 1, 2], epsilon=1.0))
        1-DP, local, one label
        1-DP, local, one person (up to 3 labels)
    """
    check_made("estimator", estimator, Estimator)
    _, _, counts = count_labels(persons)
    largest = int(counts.max())
    if not takes_persons(estimator):
        label = estimator.guarantee(**values)
        return UnitClaims(label, label.at_user_level(largest, privacy_unit=PERSON), largest)
    person = estimator.guarantee(**values, persons=persons)
    label = dataclasses.replace(
        person,
        privacy_unit="one label",
        unit="record",
        argument=f"a label is one of a person's labels: {person.argument}",
    )
    if person.trust_model == "local" and person.is_private:
        label = dataclasses.replace(label, epsilon=person.epsilon / int(counts.min()))
    return UnitClaims(label, person, largest)


def takes_persons(estimator: Estimator) -> bool:
    """Returns whether an estimator's unit of privacy is one person, so that its `params` take ids."""
    return "persons" in inspect.signature(estimator.params).parameters


def check_unit(privacy_unit: str) -> bool:
    """Returns whether the unit is one person; raises a ValueError for a name not in `PRIVACY_UNITS`."""
    return check_choice("privacy_unit", privacy_unit, PRIVACY_UNITS) == "person"


def person_index(persons: ArrayLike | None) -> np.ndarray:
    """Returns, for each label, the index of the person who gave it, as a `Params` leaf [num_samples] int32."""
    return count_labels(persons)[1]


def person_budgets(epsilon: float, persons: ArrayLike) -> np.ndarray:
    """Returns the budget of each report, [num_samples]: epsilon / k for a person with k labels, rounded down."""
    _, index, counts = count_labels(persons)
    return budget_shares(epsilon, counts)[index]


def person_norms(features: jax.Array, index: jax.Array) -> jax.Array:
    """Bounds, for each sample, the L2 sensitivity of sum_i y_i x_i to all labels of that sample's person.

    If a person's k labels change by v in [-1, 1]^k, the sum changes by X^T v. The rows of X, which are public, are the
    features of these labels. |X^T v| is at most the sum of |x_i|, sqrt(k) times the spectral norm of X, and the root of
    the sum of all |x_i . x_j|. The result, [num_samples], is the least of these bounds (without the last one if k is
    above 4,096), computed on the host in float64 and rounded up. Raises a ValueError unless there is one id per sample.
    """
    if index.shape != features.shape[:1]:
        raise ValueError(f"persons must have one id per sample, {features.shape[0]}, got shape {index.shape}")
    shape = jax.ShapeDtypeStruct(features.shape[:1], features.dtype)
    return jax.pure_callback(_norms_on_host, shape, features, index, vmap_method="sequential")


def most_labels(index: jax.Array) -> jax.Array:
    """Returns the maximum number of labels that one person gave, [] integer."""
    return jnp.max(jnp.bincount(index, length=len(index)))


def _norms_on_host(features: Any, index: Any) -> np.ndarray:
    rows = np.asarray(features)
    norms = person_lengths(rows, np.asarray(index), rows.dtype)
    cast = norms.astype(rows.dtype)
    return np.where(cast < norms, np.nextafter(cast, rows.dtype.type(np.inf)), cast)


def person_lengths(features: np.ndarray, index: np.ndarray, dtype: DTypeLike) -> np.ndarray:
    """Bounds, for each sample, the L2 sensitivity of sum_i y_i x_i to all labels of that sample's person.

    The result is [num_samples] float64. `index` gives the person of each sample. Features are first cast to `dtype`.
    """
    order = np.argsort(index, kind="stable")
    ends = np.flatnonzero(np.diff(index[order], append=-1)) + 1
    norms = np.empty(len(index))
    start = 0
    for end in ends:
        samples = order[start:end]
        norms[samples] = sum_norm(np.asarray(features[samples], dtype).astype(np.float64))
        start = end
    return norms


def sum_norm(rows: np.ndarray) -> float:
    """Returns a bound on |rows^T v| over v in [-1, 1]^k; rows are [k, dim] float64."""
    unit = np.abs(rows).max(initial=0.0)
    if unit == 0 or not np.isfinite(unit):
        return float(unit)
    rows = rows / unit
    bounds = [np.linalg.norm(rows, axis=1).sum()]
    if len(rows) > 1:
        few = len(rows) <= rows.shape[1]
        gram = rows @ rows.T if few else rows.T @ rows
        bounds.append(np.sqrt(len(rows) * np.linalg.eigvalsh(gram)[-1]))
        if len(rows) <= _LARGEST_GRAM:
            bounds.append(np.sqrt(np.abs(gram if few else rows @ rows.T).sum()))
    return float(min(bounds) * unit * _SLACK)

"""Every estimator, named once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp import estimation
from jaxdp.core import Estimator
from jaxdp.preferences import gaussian_choices, gaussian_comparisons, pair_features

Data = tuple[np.ndarray, np.ndarray]


def _relabelled(features: list, first: list[int], second: list[int]) -> tuple[Data, Data]:
    return tuple((np.asarray(features), np.asarray(labels, np.int32)) for labels in (first, second))  # pyright: ignore


# Two records, of which the longer one's label changes: the noise is for the longest, and nothing else hides it.
_COMPARISONS = _relabelled([[1.0, 0.0], [0.3, 0.4]], [0, 1], [1, 1])
_CHOICES = _relabelled([[[1.0, 0.0], [0.2, 0.3], [0.0, 0.0]], [[0.3, 0.4], [0.0, 0.0], [0.1, 0.1]]], [0, 1], [2, 1])
# One record that turns by a right angle, at the longest that it may be. It has no others to hide among.
_TURNED = np.zeros(1, np.int32)
_ONE_RECORD = ((np.asarray([[2.0, 0.0]], np.float32), _TURNED), (np.asarray([[0.0, 2.0]], np.float32), _TURNED))
# One ballot of three items that is turned around; in the central model beside another one.
_PAIRS, _WINS, _LOSES = pair_features(3), np.full((1, 3), 2, np.int8), np.full((1, 3), 0, np.int8)
_OTHER = np.asarray([[1, 0, 2]], np.int8)
_ONE_BALLOT = ((_PAIRS, _WINS), (_PAIRS, _LOSES))
_BALLOTS = ((_PAIRS, np.concatenate([_WINS, _OTHER])), (_PAIRS, np.concatenate([_LOSES, _OTHER])))


@dataclass(frozen=True, kw_only=True)
class EstimatorEntry:
    """An estimator with a tiny problem.

    Attributes:
        summary: one line, what it does.
        values: the grid point that tests use.
        make: () -> Estimator.
        data: key -> (features, labels) of the tiny problem.
        neighbours: two data sets (features, labels) that differ in one privacy unit, between which the estimator is
            least private, or nearly so.
    """

    summary: str
    values: Mapping[str, float]
    make: Callable[[], Estimator]
    data: Callable[[jax.Array], tuple[jax.Array, jax.Array]] = lambda key: tiny_data(key)
    neighbours: tuple[Data, Data] = _COMPARISONS


def tiny_data(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The problem that estimators are tried on: features [60, 3] float and labels [60] int32."""
    data = gaussian_comparisons(key, num_samples=60, dim=3)
    return data.features, data.labels


def tiny_choices(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The problem that K-wise estimators are tried on: features [60, 4, 3] float and labels [60] int32."""
    data = gaussian_choices(key, num_samples=60, num_actions=4, dim=3)
    return data.features, data.labels


def tiny_election(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The problem that estimators of ballots are tried on: features [6, 4] float and labels [40, 6] int8."""
    features = jnp.asarray(pair_features(4), jax.dtypes.canonicalize_dtype(float))
    return features, jax.random.randint(key, (40, 6), 0, 3, jnp.int32).astype(jnp.int8)


ESTIMATORS: dict[str, EstimatorEntry] = {
    "mle": EstimatorEntry(
        summary="maximum likelihood from labels in the clear",
        values={"radius": 3.0},
        make=estimation.mle,
    ),
    "mle_rr": EstimatorEntry(
        summary="maximum likelihood of randomized labels",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.mle_rr,
    ),
    "debiased_rr": EstimatorEntry(
        summary="minimum of the de-biased loss of randomized labels",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.debiased_rr,
    ),
    "sgd": EstimatorEntry(
        summary="one pass of projected SGD over labels in the clear",
        values={"radius": 3.0},
        make=estimation.sgd,
    ),
    "sgd_rr": EstimatorEntry(
        summary="one pass of projected SGD over randomized labels",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.sgd_rr,
    ),
    "objective_perturbation": EstimatorEntry(
        summary="maximum likelihood with a Gaussian-noised sufficient statistic of the labels",
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
        make=estimation.objective_perturbation,
    ),
    "sgd_objective_perturbation": EstimatorEntry(
        summary="one pass of projected SGD with a Gaussian-noised sufficient statistic of the labels",
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
        make=estimation.sgd_objective_perturbation,
    ),
    "literal_objective_perturbation": EstimatorEntry(
        summary="SGD on raw labels with a noisy linear term, as DP-Reward's simulation reads; no proof of privacy",
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
        make=estimation.literal_objective_perturbation,
    ),
    "objective_perturbation_full": EstimatorEntry(
        summary="maximum likelihood with noise in the objective, which hides features and labels",
        values={"epsilon": 1.0, "delta": 1e-3, "feature_norm": 1.0, "radius": 3.0},
        make=estimation.objective_perturbation_full,
        neighbours=_ONE_RECORD,
    ),
    "thurstone_rr": EstimatorEntry(
        summary="one pass of projected SGD under Thurstone's model over randomized labels",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.thurstone_rr,
    ),
    "plackett_luce_mle": EstimatorEntry(
        summary="maximum likelihood from choices among K actions in the clear",
        values={"radius": 3.0},
        make=estimation.plackett_luce_mle,
        data=tiny_choices,
        neighbours=_CHOICES,
    ),
    "plackett_luce_debiased_krr": EstimatorEntry(
        summary="minimum of the de-biased loss of K-ary randomized choices",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.plackett_luce_debiased_krr,
        data=tiny_choices,
        neighbours=_CHOICES,
    ),
    "plackett_luce_objective_perturbation": EstimatorEntry(
        summary="maximum likelihood with a Gaussian-noised sufficient statistic of choices among K actions",
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
        make=estimation.plackett_luce_objective_perturbation,
        data=tiny_choices,
        neighbours=_CHOICES,
    ),
    "sgd_krr": EstimatorEntry(
        summary="one pass of projected SGD over K-ary randomized choices",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.sgd_krr,
        data=tiny_choices,
        neighbours=_CHOICES,
    ),
    "ballot_mle": EstimatorEntry(
        summary="maximum likelihood from ballots in the clear",
        values={"radius": 3.0},
        make=estimation.ballot_mle,
        data=tiny_election,
        neighbours=_BALLOTS,
    ),
    "ballot_objective_perturbation": EstimatorEntry(
        summary="maximum likelihood with a Gaussian-noised sufficient statistic of whole ballots",
        values={"epsilon": 1.0, "delta": 1e-3, "radius": 3.0},
        make=estimation.ballot_objective_perturbation,
        data=tiny_election,
        neighbours=_BALLOTS,
    ),
    "ballot_rr": EstimatorEntry(
        summary="minimum of the de-biased loss of voters' randomized answers about few pairs of items",
        values={"epsilon": 1.0, "radius": 3.0},
        make=estimation.ballot_rr,
        data=tiny_election,
        neighbours=_ONE_BALLOT,
    ),
}

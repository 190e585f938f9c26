"""Every estimator, named once."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import jax

from jaxdp import estimation
from jaxdp.learner import Estimator
from jaxdp.preferences import gaussian_comparisons


@dataclass(frozen=True, kw_only=True)
class EstimatorEntry:
    """An estimator with a tiny problem.

    Attributes:
        summary: one line, what it does.
        values: the grid point that tests use.
        make: () -> Estimator.
    """

    summary: str
    values: Mapping[str, float]
    make: Callable[[], Estimator]


def tiny_data(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The problem that estimators are tried on: features [60, 3] float and labels [60] int32."""
    data = gaussian_comparisons(key, num_samples=60, dim=3)
    return data.features, data.labels


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
}

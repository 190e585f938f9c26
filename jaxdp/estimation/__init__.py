"""Offline estimation from comparisons: non-private, locally private and centrally private."""

from jaxdp.estimation.ballots import ballot_mle, ballot_objective_perturbation, ballot_rr, ballot_sensitivity
from jaxdp.estimation.estimate import check_data, estimate
from jaxdp.estimation.maximum_likelihood import debiased_rr, mle, mle_rr
from jaxdp.estimation.metrics import l2_error, semi_norm_error
from jaxdp.estimation.objective_perturbation import (
    literal_objective_perturbation,
    objective_perturbation,
    sgd_objective_perturbation,
)
from jaxdp.estimation.problems import ballot_election, comparison_table, gaussian_rewards
from jaxdp.estimation.sgd import sgd, sgd_rr
from jaxdp.estimation.solver import Estimate

__all__ = [
    "Estimate",
    "ballot_election",
    "ballot_mle",
    "ballot_objective_perturbation",
    "ballot_rr",
    "ballot_sensitivity",
    "check_data",
    "comparison_table",
    "debiased_rr",
    "estimate",
    "gaussian_rewards",
    "l2_error",
    "literal_objective_perturbation",
    "mle",
    "mle_rr",
    "objective_perturbation",
    "semi_norm_error",
    "sgd",
    "sgd_objective_perturbation",
    "sgd_rr",
]

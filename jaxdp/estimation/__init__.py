"""Offline estimation from preferences: non-private, locally private and centrally private."""

from jaxdp.estimation.estimate import check_choices, check_data, estimate
from jaxdp.estimation.maximum_likelihood import debiased_rr, mle, mle_rr
from jaxdp.estimation.metrics import l2_error, semi_norm_error
from jaxdp.estimation.objective_perturbation import (
    literal_objective_perturbation,
    objective_perturbation,
    sgd_objective_perturbation,
)
from jaxdp.estimation.objective_perturbation_full import objective_perturbation_full
from jaxdp.estimation.plackett_luce import (
    plackett_luce_debiased_krr,
    plackett_luce_mle,
    plackett_luce_objective_perturbation,
)
from jaxdp.estimation.problems import comparison_table, gaussian_rewards, plackett_luce_rewards
from jaxdp.estimation.sgd import sgd, sgd_rr
from jaxdp.estimation.sgd_krr import sgd_krr
from jaxdp.estimation.solver import Estimate
from jaxdp.estimation.thurstone import thurstone_rr

__all__ = [
    "Estimate",
    "check_choices",
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
    "objective_perturbation_full",
    "plackett_luce_debiased_krr",
    "plackett_luce_mle",
    "plackett_luce_objective_perturbation",
    "plackett_luce_rewards",
    "semi_norm_error",
    "sgd",
    "sgd_krr",
    "sgd_objective_perturbation",
    "sgd_rr",
    "thurstone_rr",
]

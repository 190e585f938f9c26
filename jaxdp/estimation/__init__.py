"""Offline estimators of preference models: non-private, locally private and centrally private."""

from jaxdp.estimation._estimate import check_choices, check_data, estimate
from jaxdp.estimation._objective_perturbation import (
    literal_objective_perturbation,
    objective_perturbation,
    sgd_objective_perturbation,
)
from jaxdp.estimation._objective_perturbation_full import objective_perturbation_full
from jaxdp.estimation._offline_bandit import Bandit, offline_bandit
from jaxdp.estimation._release_head import ReleasedHead, release_head
from jaxdp.estimation._sgd import sgd, sgd_rr
from jaxdp.estimation._sgd_krr import sgd_krr
from jaxdp.estimation.ballots import ballot_mle, ballot_objective_perturbation, ballot_rr, ballot_sensitivity
from jaxdp.estimation.confidence import ConfidenceSet, ConfidentEstimate, confidence_set, with_confidence
from jaxdp.estimation.label_noise import LabelNoise
from jaxdp.estimation.large import FitCost, predict_fit_cost
from jaxdp.estimation.maximum_likelihood import debiased_rr, mle, mle_rr
from jaxdp.estimation.metrics import l2_error, semi_norm_error
from jaxdp.estimation.persons import UnitClaims, claims_for_persons
from jaxdp.estimation.plackett_luce import (
    plackett_luce_debiased_krr,
    plackett_luce_mle,
    plackett_luce_objective_perturbation,
)
from jaxdp.estimation.policy import (
    PessimisticPolicy,
    best_of_policies,
    check_states,
    every_policy,
    greedy_policy,
    per_state_pessimistic_policy,
    pessimistic_policy,
    pessimistic_value,
    relative_features,
    suboptimality,
)
from jaxdp.estimation.problems import ballot_election, comparison_table, gaussian_rewards, plackett_luce_rewards
from jaxdp.estimation.public_weights import WithCut, predicted_errors, quieter_noise
from jaxdp.estimation.sandwich import Covariance
from jaxdp.estimation.solver import Estimate
from jaxdp.estimation.thurstone import thurstone_rr
from jaxdp.estimation.whitening import predicted_margin_errors, predicted_ridge

__all__ = [
    "Bandit",
    "ConfidenceSet",
    "ConfidentEstimate",
    "Covariance",
    "Estimate",
    "FitCost",
    "LabelNoise",
    "PessimisticPolicy",
    "ReleasedHead",
    "UnitClaims",
    "WithCut",
    "ballot_election",
    "ballot_mle",
    "ballot_objective_perturbation",
    "ballot_rr",
    "ballot_sensitivity",
    "best_of_policies",
    "check_choices",
    "check_data",
    "check_states",
    "claims_for_persons",
    "comparison_table",
    "confidence_set",
    "debiased_rr",
    "estimate",
    "every_policy",
    "gaussian_rewards",
    "greedy_policy",
    "l2_error",
    "literal_objective_perturbation",
    "mle",
    "mle_rr",
    "objective_perturbation",
    "objective_perturbation_full",
    "offline_bandit",
    "per_state_pessimistic_policy",
    "pessimistic_policy",
    "pessimistic_value",
    "plackett_luce_debiased_krr",
    "plackett_luce_mle",
    "plackett_luce_objective_perturbation",
    "plackett_luce_rewards",
    "predict_fit_cost",
    "predicted_errors",
    "predicted_margin_errors",
    "predicted_ridge",
    "quieter_noise",
    "relative_features",
    "release_head",
    "semi_norm_error",
    "sgd",
    "sgd_krr",
    "sgd_objective_perturbation",
    "sgd_rr",
    "suboptimality",
    "thurstone_rr",
    "with_confidence",
]

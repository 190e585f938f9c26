"""Differentially private mechanisms, and the noise they need."""

from jaxdp.mechanisms.additive import gaussian, laplace
from jaxdp.mechanisms.calibration import (
    analytic_gaussian,
    classical_gaussian,
    gaussian_delta,
    gaussian_epsilon,
    round_up,
    zcdp_epsilon,
    zcdp_gaussian,
    zcdp_rho,
)
from jaxdp.mechanisms.noisy_max import noisy_max, noisy_min
from jaxdp.mechanisms.randomized_response import (
    debias_labels,
    debias_one_hot,
    debias_scalar,
    randomize_scalar,
    randomized_response,
)
from jaxdp.mechanisms.sparse_vector import (
    AboveThreshold,
    above_threshold,
    above_threshold_init,
    above_threshold_step,
)

__all__ = [
    "AboveThreshold",
    "above_threshold",
    "above_threshold_init",
    "above_threshold_step",
    "analytic_gaussian",
    "classical_gaussian",
    "debias_labels",
    "debias_one_hot",
    "debias_scalar",
    "gaussian",
    "gaussian_delta",
    "gaussian_epsilon",
    "laplace",
    "noisy_max",
    "noisy_min",
    "randomize_scalar",
    "randomized_response",
    "round_up",
    "zcdp_epsilon",
    "zcdp_gaussian",
    "zcdp_rho",
]

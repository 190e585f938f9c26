"""Differentially private mechanisms, and the noise they need."""

from jaxdp.mechanisms._noisy_leads import noisy_leads
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
from jaxdp.mechanisms.channel import (
    LabelParams,
    MomentParams,
    Moments,
    ScalarParams,
    VectorParams,
    label_channel,
    moment_channel,
    scalar_channel,
    vector_channel,
)
from jaxdp.mechanisms.continual_counting import (
    Counter,
    best_arity,
    doubling_counter,
    laplace_sum_radius,
    toeplitz_counter,
    tree_counter,
    tree_radius,
    tree_variance,
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
    "Counter",
    "LabelParams",
    "MomentParams",
    "Moments",
    "ScalarParams",
    "VectorParams",
    "above_threshold",
    "above_threshold_init",
    "above_threshold_step",
    "analytic_gaussian",
    "best_arity",
    "classical_gaussian",
    "debias_labels",
    "debias_one_hot",
    "debias_scalar",
    "doubling_counter",
    "gaussian",
    "gaussian_delta",
    "gaussian_epsilon",
    "label_channel",
    "laplace",
    "laplace_sum_radius",
    "moment_channel",
    "noisy_leads",
    "noisy_max",
    "noisy_min",
    "randomize_scalar",
    "randomized_response",
    "round_up",
    "scalar_channel",
    "toeplitz_counter",
    "tree_counter",
    "tree_radius",
    "tree_variance",
    "vector_channel",
    "zcdp_epsilon",
    "zcdp_gaussian",
    "zcdp_rho",
]

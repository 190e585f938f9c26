"""One-pass stochastic gradient descent on K-ary randomized choices: Algorithm 1 of `_sgd` with another `Model`."""

import jax
import jax.numpy as jnp
import optax

from jaxdp.core import Estimator, reusing_factory
from jaxdp.estimation._estimate import check_choices
from jaxdp.estimation._sgd import Model, one_pass_estimator, randomized_params
from jaxdp.estimation.label_params import randomized_labels_claim
from jaxdp.estimation.plackett_luce import report_randomized_choices
from jaxdp.mechanisms import debias_one_hot


def _gain(epsilon: jax.Array, features: jax.Array) -> jax.Array:
    """Returns the factor g of `sgd_krr`, (e^epsilon - 1) / (e^epsilon + K - 1); 1 at epsilon = inf."""
    return -jnp.expm1(-epsilon) / (1 + (features.shape[1] - 1) * jnp.exp(-epsilon))


CHOICES = Model(
    slope=lambda margins, targets: jax.nn.softmax(margins, axis=0) - targets,
    targets=lambda report, epsilon, features: debias_one_hot(report, epsilon, num_labels=features.shape[1]),
    gain=_gain,
    curvature=lambda feature_norm, radius: jnp.exp(-4 * feature_norm * radius) / 2,
)
"""The Plackett-Luce model, top-1: -log p_y has the slope p_k - 1[k = y] in the margin of action k."""


@reusing_factory
def sgd_krr(
    *,
    step_size: str = "constant",
    average: str = "last_half",
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
) -> Estimator:
    r"""Builds an estimator that makes one pass of SGD on the de-biased Plackett-Luce loss of randomized choices.

    The gradient of a sample (see Math) equals the paper's sum_y grad log p_y / (e^epsilon + K - 1) - grad log p_report.
    In expectation it is g times the gradient at the label itself. At epsilon = inf this is non-private SGD.

    Args:
        step_size: "constant" (learning_rate), or "inverse_time": 1 / (gamma_eps kappa t) at sample t.
        average: the iterates that are averaged: "none" (the last iterate is returned), "all" or "last_half".
        zero_sum: whether to constrain sum(theta) = 0.
        optimizer: an Optax optimiser in place of SGD with a constant step.

    Returns:
        An estimator of theta from features [num_samples, K, dim] float, |phi| <= L, and labels [num_samples] int in [0,
        K). The samples are processed in order. The `params` take epsilon and radius (default inf). Without an optimizer
        they also take learning_rate (0.1) or, for "inverse_time", coverage kappa and feature_norm L.

    Raises:
        ValueError: if step_size or average is unknown, or an optimizer is given with "inverse_time". The result's
            `params` raises this error if a value is not > 0 or too large or small for the float type, or if radius,
            coverage or feature_norm is infinite for "inverse_time".

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; adjacency: replace one.
        - Why: Each label is reported once by K-ary randomized response.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (12), Theorem C.2, Algorithm 1.

    Deviations:
        The "inverse_time" step is 1/(gamma_eps kappa t) with gamma_eps = g gamma and gamma = e^(-4 L B) / 2, as in the
        proof of Theorem C.2 (section 4.4 has gamma = e^(-4 L B)). Averaging is an addition, on by default. The proof's
        curvature is gamma times the covariance of phi_j - phi_k, averaged over all K^2 ordered pairs (j, k). So
        coverage is the smallest eigenvalue of this average. If the covariance of every pair j != k has eigenvalues of
        at least kappa', coverage is kappa' * (K - 1) / K, and not kappa' as in the paper.

    Math:
        Let $p_k \propto e^{\phi_{tk}^\top \theta_t}$, and $d_k$ be the unbiased one-hot entries of the report. Sample
        $t$ moves the estimate by

        $$
        \theta_{t+1} = \Pi\Big( \theta_t - \eta_t g \sum_k (p_k - d_k) \phi_{tk} \Big), \quad
        g = \frac{e^{\varepsilon} - 1}{e^{\varepsilon} + K - 1}
        $$

        The step size of "inverse_time" is

        $$
        \eta_t = \frac{1}{\gamma_\varepsilon \kappa t}, \quad \gamma_\varepsilon = g \gamma, \quad
        \gamma = \frac{e^{-4 L B}}{2}
        $$
    """
    return one_pass_estimator(
        randomized_params,
        randomized_labels_claim,
        report_randomized_choices,
        model=CHOICES,
        step_size=step_size,
        average=average,
        zero_sum=zero_sum,
        optimizer=optimizer,
    )._replace(check=check_choices)

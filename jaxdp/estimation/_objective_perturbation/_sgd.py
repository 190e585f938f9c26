"""Builds estimators by SGD: on the objective of `objective_perturbation`, and as in the simulation of DP-Reward.

DP-Reward is the paper of Chowdhury, Zhou & Natarajan (2023).
"""

import jax.numpy as jnp
import optax

from jaxdp.core import Estimator, Guarantee, guarantee_for, reusing_factory
from jaxdp.estimation._objective_perturbation._objective_perturbation import report_statistic
from jaxdp.estimation._sgd import estimate_without_certificate
from jaxdp.estimation.constraints import center
from jaxdp.estimation.noisy_statistic import (
    Params,
    Release,
    Weighted,
    check_release,
    noise_stddev,
    sensitivity_unit,
    statistic_claim,
    statistic_params,
)
from jaxdp.estimation.objectives import label_loss
from jaxdp.estimation.one_pass import AVERAGES, Pass, Recipe, one_pass
from jaxdp.estimation.public_weights import feature_norms
from jaxdp.estimation.solver import Estimate
from jaxdp.mechanisms import gaussian
from jaxdp.preferences import logistic
from jaxdp.validation import check_choice

PAPER = Release("paper", "none", "gaussian")


@reusing_factory
def sgd_objective_perturbation(
    *,
    constants: str = "analytic",
    weights: str = "none",
    noise: str = "gaussian",
    average: str = "last_half",
    zero_sum: bool = False,
    max_dim: int | None = None,
    optimizer: optax.GradientTransformation | None = None,
) -> Estimator:
    r"""Builds an estimator that makes one pass of projected SGD on the objective of `objective_perturbation`.

    Labels enter gradients only through the noisy statistic S~. Weights, S~ and beta are divided by the mean weight, so
    that weighting does not rescale the steps.

    Args:
        constants: "analytic", "classical" or "paper"; see `objective_perturbation`.
        weights: "none" or "cut"; see `objective_perturbation`.
        noise: "gaussian" or "k_norm"; see `objective_perturbation`.
        average: the iterates that are averaged: "none" (the last iterate is returned), "all" or "last_half".
        zero_sum: whether to constrain sum(theta) = 0.
        max_dim: maximum dimension of the feature vectors; see `objective_perturbation`.
        optimizer: an Optax optimiser in place of SGD with a constant learning_rate.

    Returns:
        An estimator like `objective_perturbation`, but its `params` take learning_rate (0.1) in place of tolerance.

    Raises:
        ValueError: as `objective_perturbation`, and if average is unknown.

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model; with K-norm noise, epsilon-DP.
        - Unit: one label; adjacency: replace one.
        - Why: Labels enter only S~, as for `objective_perturbation`; the iterates are post-processing.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 6 ("objective perturbation using SGD updates").

    Deviations:
        The paper's updates use raw labels, which its Theorem 5.2 does not cover (see `literal_objective_perturbation`).
        Averaging is an addition, and on by default.

    Math:
        $$
        \theta_{t+1} = \Pi\Big( \theta_t - \eta \Big( \frac{w_t x_t}{1 + e^{-x_t^\top \theta_t}} - \frac{\tilde S}{n} +
        \frac{\beta}{n} \theta_t \Big) \Big), \quad \tilde S = \sum_i w_i y_i x_i + Z
        $$

        where $\Pi$ projects onto the ball of radius $B$, $\eta$ is `learning_rate`, and $Z$ is the noise of
        `objective_perturbation`. With weights, $w_t$, $\tilde S$ and $\beta$ are first divided by the mean weight. With
        zero_sum, the features are centred, and $\Pi$ also projects onto $\sum_j \theta_j = 0$.
    """
    release = check_release(constants, weights, noise, max_dim=max_dim)
    check_choice("average", average, AVERAGES)

    def fit(key, params: Params, features, report) -> Estimate:
        del key
        unlabelled = jnp.zeros(features.shape[0], features.dtype)  # the slope at y = 0 is sigmoid(z)
        if not release.is_weighted:
            return _one_pass(params, features, unlabelled, -report, zero_sum, optimizer, average)
        lengths = feature_norms(center(features) if zero_sum else features)
        weighted = Weighted.of(lengths, report, jnp.ones((), features.dtype))
        return _one_pass(params, features, unlabelled, -weighted.statistic, zero_sum, optimizer, average, weighted)

    params = statistic_params("sgd_objective_perturbation", release, "learning_rate")
    report = report_statistic(release, zero_sum)
    return Estimator(params, guarantee_for(params, statistic_claim(release)), report, fit, features_public=True)


@reusing_factory
def literal_objective_perturbation(
    *, average: str = "none", optimizer: optax.GradientTransformation | None = None
) -> Estimator:
    r"""Builds the estimator of DP-Reward's simulation: SGD on raw labels, with the same noise in every gradient.

    The noise is w / n, where n is the number of samples, and w is a Gaussian vector that is drawn once. This estimator
    exists to reproduce the paper's figure. With a constant step the error of the last iterate does not fall with n.

    Args:
        average: the iterates that are averaged: "none" (the last iterate is returned), "all" or "last_half".
        optimizer: an Optax optimiser in place of SGD with a constant learning_rate.

    Returns:
        An estimator with the `params` of `sgd_objective_perturbation(constants="paper")`.

    Raises:
        ValueError: if average is unknown. The result's `params` raises this error if a value is out of range.

    Privacy:
        - No claim is made.
        - Theorem 5.2 covers the exact minimiser of the perturbed objective; an SGD iterate is a different function of
          the raw labels, and no proof shows that w hides the labels.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 6, with sigma of Theorem 5.2.

    Deviations:
        The paper does not state how w and beta enter a step; w / n and (beta / n) theta are assumed.

    Math:
        $$
        \theta_{t+1} = \Pi\Big( \theta_t - \eta \Big( \Big( \frac{1}{1 + e^{-x_t^\top \theta_t}} - y_t \Big) x_t +
        \frac{w + \beta \theta_t}{n} \Big) \Big), \quad w \sim N(0, \sigma^2 I), \quad
        \sigma = \frac{L}{\varepsilon} \sqrt{8 \ln(2 / \delta) + 4 \varepsilon}
        $$

        where $\Pi$ projects onto the ball of radius $B$, $\eta$ is `learning_rate`, $\beta$ is `regularization`, and
        $|x_t| \le 2 L$.
    """
    check_choice("average", average, AVERAGES)

    def claim() -> Guarantee:
        return Guarantee.none(
            trust_model="central",
            privacy_unit="one label",
            argument="none: Theorem 5.2 covers the exact minimiser, not SGD iterates on raw labels",
        )

    def privatize(key, params: Params, features, labels):
        w = jnp.zeros(features.shape[1], features.dtype)
        unit = sensitivity_unit(params, feature_norms(features), PAPER)
        return labels, gaussian(key, w, noise_stddev(params.noise_multiplier, unit))

    def fit(key, params: Params, features, report) -> Estimate:
        del key
        labels, w = report
        return _one_pass(params, features, labels.astype(features.dtype), w, False, optimizer, average)

    params = statistic_params("literal_objective_perturbation", PAPER, "learning_rate")
    return Estimator(params, guarantee_for(params, claim), privatize, fit, features_public=True)


def _one_pass(
    params: Params,
    features,
    targets,
    linear,
    zero_sum: bool,
    optimizer,
    average: str,
    weighted: Weighted | None = None,
) -> Estimate:
    """Runs SGD on (1/n) sum_i w_i loss(x_i^T theta, targets_i) + linear^T theta / n + ridge / 2 * |theta|^2.

    Weights are scaled to the mean 1. The ridge is beta / n, divided by the mean weight before this scaling.
    """
    dtype, num_samples = features.dtype, features.shape[0]
    ridge = jnp.asarray(params.regularization, dtype) / num_samples
    data = Pass(
        features=center(features) if zero_sum else features,
        targets=targets,
        gain=jnp.ones((), dtype),
        rate=jnp.asarray(params.learning_rate, dtype),
        radius=jnp.asarray(params.radius, dtype),
        linear=linear / num_samples,
        ridge=ridge if weighted is None else ridge / weighted.mean,
        weights=None if weighted is None else weighted.weights,
    )
    recipe = Recipe(label_loss(logistic).slope, average, inverse_time=False, zero_sum=zero_sum)
    return estimate_without_certificate(one_pass(data, recipe, optimizer), num_samples)

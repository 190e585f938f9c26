"""Non-private, local and central full-batch Plackett-Luce estimators for K-wise choices and rankings.

Features are [num_samples, K, dim], one row for every action. Adding one vector to all K rows of a sample does not
change the model, so estimators first subtract the mean row.
"""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdp.core import Estimator, Guarantee, reusing_factory
from jaxdp.estimation._estimate import check_choices
from jaxdp.estimation.constraints import center
from jaxdp.estimation.full_batch import MAX_STEPS, full_batch_estimator
from jaxdp.estimation.label_noise import search_basis
from jaxdp.estimation.label_params import TOLERANCE, clear_labels_claim, make_params, randomized_labels_claim
from jaxdp.estimation.label_params import Params as LikelihoodParams
from jaxdp.estimation.label_reports import report_clear
from jaxdp.estimation.noisy_statistic import (
    Params,
    Weighted,
    check_release,
    release_statistic,
    statistic_claim,
    statistic_params,
)
from jaxdp.estimation.objectives import Objective, choice_objective
from jaxdp.estimation.public_weights import cast_up, feature_norms
from jaxdp.mechanisms import LabelParams, debias_one_hot, label_randomizer
from jaxdp.numerics.fixed_point import in_64_bits

CONSTANTS = ("analytic", "classical")


@reusing_factory
def plackett_luce_mle(
    *,
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int = MAX_STEPS,
) -> Estimator:
    r"""Builds the non-private maximum-likelihood estimator for K-wise labels, a baseline for the private estimators.

    Minimises the mean of log sum_k exp(phi_k^T theta) - phi_y^T theta over |theta| <= radius. For rankings the loss is
    summed over the ranks; at each rank, the ranking chooses among the remaining actions.

    Args:
        zero_sum: whether to constrain sum(theta) = 0; use it if adding a constant to all entries of theta changes no
            probability.
        optimizer: Optax optimiser; None means Newton's method on the ball. See `mle`.
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator of theta from features [num_samples, K, dim] float and labels. Labels are [num_samples] int in [0,
        K), the preferred actions, or [num_samples, K] int, all actions from the best to the worst. Its `params` take
        radius (default inf) and tolerance (default 1e-5).

    Raises:
        ValueError: if max_steps < 1. The result's `params` raises this error if radius or tolerance is not > 0.

    Privacy:
        - None.

    Source:
        Plackett (1975), Luce (1959); DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (11) and appendix C.4.

    Deviations:
        The loss is a mean instead of a sum. The minimiser is the same.

    Math:
        For labels $y_i$, the preferred actions, and the radius $B$,

        $$
        \hat\theta = \operatorname{argmin}_{|\theta| \le B} \frac{1}{n} \sum_i
        \Big( \ln \sum_k e^{\phi_{ik}^\top \theta} - \phi_{i y_i}^\top \theta \Big)
        $$
    """

    def params(*, radius: float = np.inf, tolerance: float = TOLERANCE) -> LikelihoodParams:
        return make_params(epsilon=np.inf, radius=radius, tolerance=tolerance)

    def objective(params: LikelihoodParams, features, report, scale) -> Objective:
        del params, scale
        if report.ndim == 1:
            targets = jax.nn.one_hot(report, features.shape[1], dtype=features.dtype)
            return choice_objective(features, chosen_sum(features, targets), _no_ridge(features))
        ranked = jnp.take_along_axis(features, report[:, :, None], axis=1)
        depth = ranked.shape[1] - 1
        return choice_objective(ranked, jnp.sum(ranked[:, :depth], axis=(0, 1)), _no_ridge(features), depth=depth)

    return _choice_estimator(
        params,
        clear_labels_claim,
        report_clear,
        objective,
        zero_sum=zero_sum,
        optimizer=optimizer,
        max_steps=max_steps,
    )._replace(check=functools.partial(check_choices, rankings=True))


@reusing_factory
def plackett_luce_debiased_krr(
    *,
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int = MAX_STEPS,
) -> Estimator:
    r"""Builds the estimator that minimises the de-biased Plackett-Luce loss of K-ary randomized labels.

    The label's one-hot vector is replaced by an unbiased estimate, computed from the randomized label. The loss is
    linear in this vector, so the objective is convex at every epsilon, and its expectation is the objective of the true
    labels.

    Args:
        zero_sum: whether to constrain sum(theta) = 0; use it if adding a constant to all entries of theta changes no
            probability.
        optimizer: Optax optimiser; None means Newton's method on the ball. See `mle`.
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator of theta from features [num_samples, K, dim] float and labels [num_samples] int in [0, K). Its
        `params` take epsilon, radius (default inf) and tolerance (default 1e-5).

    Raises:
        ValueError: if max_steps < 1. The result's `params` raises this error if epsilon, radius or tolerance is not
            > 0.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; adjacency: replace one.
        - Why: Each label is reported once by K-ary randomized response.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (12), which the paper solves by SGD (`sgd_krr`); de-biasing
        as in its eq. (4)-(6).

    Deviations:
        The loss of all samples is minimised at once, instead of by SGD.

    Math:
        A report $r_i$ is the label with probability $p$, and each other label with probability $q$. For the radius
        $B$, the estimate is

        $$
        \hat\theta = \operatorname{argmin}_{|\theta| \le B} \frac{1}{n} \sum_i
        \Big( \ln \sum_k e^{\phi_{ik}^\top \theta} - \sum_k d_{ik} \phi_{ik}^\top \theta \Big), \quad
        d_{ik} = \frac{1[r_i = k] - q}{p - q}
        $$

        with

        $$
        p = \frac{e^{\varepsilon}}{e^{\varepsilon} + K - 1}, \quad q = \frac{1}{e^{\varepsilon} + K - 1}
        $$
    """

    def objective(params: LikelihoodParams, features, report, scale) -> Objective:
        del scale
        targets = debias_one_hot(report, params.epsilon, num_labels=features.shape[1]).astype(features.dtype)
        return choice_objective(features, chosen_sum(features, targets), _no_ridge(features))

    return _choice_estimator(
        make_params,
        randomized_labels_claim,
        report_randomized_choices,
        objective,
        zero_sum=zero_sum,
        optimizer=optimizer,
        max_steps=max_steps,
    )


@reusing_factory
def plackett_luce_objective_perturbation(
    *,
    constants: str = "analytic",
    weights: str = "none",
    noise: str = "gaussian",
    zero_sum: bool = False,
    max_dim: int | None = None,
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int = MAX_STEPS,
) -> Estimator:
    r"""Builds a K-wise estimator with central label privacy: maximum likelihood with a noisy sufficient statistic.

    Labels enter the loss only through S, the sum of w_i times the features of the preferred action of sample i. S is
    released once with noise, as S~, and the estimator minimises the loss with S~ (see Math). Without weights all w_i
    are 1. With `weights="cut"` they are min(1, c / d_i), where d_i is the largest |phi_ij - phi_ik| of the sample.
    Rankings are not supported, because no sum over samples determines their loss.

    `privatize` returns S~ minus the public sum_i w_i mean_k phi_ik; with weights, a `WithCut` of this vector and c.

    Args:
        constants: the calibration of Gaussian noise: "analytic", or "classical" (raises for finite epsilon >= 1).
        weights: "none" or "cut".
        noise: "gaussian", or "k_norm", which takes no delta.
        zero_sum: whether to constrain sum(theta) = 0; features are centred first, which never increases their norms.
        max_dim: maximum dimension of the feature vectors; see `objective_perturbation`.
        optimizer: Optax optimiser; None means Newton's method on the ball. See `mle`.
        max_steps: maximum number of gradient evaluations, >= 1.

    Returns:
        An estimator of theta from features [num_samples, K, dim] float and labels [num_samples] int in [0, K). Its
        `params` take epsilon, delta (only for Gaussian noise), radius B (default inf), regularization beta (0) and
        tolerance (1e-5). For weights="cut" they also take cut, the number c, as in `objective_perturbation`.

    Raises:
        ValueError: as `objective_perturbation`.

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model; with K-norm noise, epsilon-DP.
        - Unit: one label; adjacency: replace one.
        - Sensitivity: A label enters only through S, with L2 sensitivity max w_i |phi_ij - phi_ik| over samples and
          pairs of actions of the public features (at most 2 L if all |phi| <= L, or c). The minimiser is
          post-processing.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorem 5.2 and Algorithm 2, extended from two actions to K.

    Deviations:
        As `objective_perturbation`; the paper has no K-wise central algorithm, and no constants for one.

    Math:
        With $\phi_{ik}$ the features of action $k$ in sample $i$ of $n$, $y_i$ the preferred action and $w_i$ the
        sample's weight, the estimate minimises, over $|\theta| \le B$,

        $$
        \frac{1}{n} \sum_i w_i \ln \sum_k e^{\phi_{ik}^\top \theta} - \frac{1}{n} \tilde S^\top \theta +
        \frac{\beta}{2 n} |\theta|^2, \quad \tilde S = \sum_i w_i \phi_{i y_i} + Z, \quad Z \sim N(0, \sigma^2 I)
        $$

        where $\beta$ is `regularization`. For "analytic" $\sigma$ is the number for which the formula of `gaussian`
        gives $\delta$ at the $L_2$ sensitivity $\Delta$, and for "classical"

        $$
        \sigma = \frac{\Delta}{\varepsilon} \sqrt{2 \ln(1.25 / \delta)}, \quad
        \Delta = \max_{i, j, k} w_i |\phi_{ij} - \phi_{ik}|
        $$

        K-norm noise $Z$ has a density proportional to $e^{-\varepsilon |z| / \Delta}$ (see `k_norm`).
    """
    release = check_release(constants, weights, noise, CONSTANTS, max_dim=max_dim)

    def privatize(key, params: Params, features, labels):
        features = relative(center(features) if zero_sum else features)
        num_actions = features.shape[1]
        targets = jax.nn.one_hot(labels, num_actions, dtype=features.dtype)
        # A sample's term of S, minus the public mean row, which `relative` has subtracted.
        chosen = jnp.einsum("nk,nkd->nd", targets, features, precision="highest")
        basis = search_basis(features[:, 0], zero_sum=zero_sum)
        # The second moment of the rows is the Fisher information at 0.
        rows = features / np.sqrt(num_actions).astype(features.dtype)
        sizes = jnp.max(jnp.abs(features), axis=1)
        return release_statistic(key, params, chosen, sizes, _lengths(features), lambda: rows, release, basis)

    def objective(params: Params, features, report, scale) -> Objective:
        ridge = jnp.asarray(params.regularization, features.dtype) / scale**2
        if not release.is_weighted:
            return choice_objective(features, report / scale, ridge)
        weighted = Weighted.of(_lengths(features * jnp.broadcast_to(scale, features.shape)), report, scale)
        return choice_objective(features, weighted.statistic, ridge / weighted.mean, weights=weighted.weights)

    return _choice_estimator(
        statistic_params("plackett_luce_objective_perturbation", release, "tolerance"),
        statistic_claim(release),
        privatize,
        objective,
        zero_sum=zero_sum,
        optimizer=optimizer,
        max_steps=max_steps,
    )


def report_randomized_choices(key: jax.Array, params: Any, features: jax.Array, labels: jax.Array) -> jax.Array:
    """Returns every user's randomized choice among K actions; used as `privatize` of the local K-wise estimators."""
    return label_randomizer(features.shape[1]).report(key, LabelParams(epsilon=params.epsilon), labels)


def relative(features: jax.Array) -> jax.Array:
    """Subtracts from each action's features the mean over the sample's actions; features are [num_samples, K, dim]."""
    return features - jnp.mean(features, axis=1, keepdims=True)


def chosen_sum(features: jax.Array, targets: jax.Array) -> jax.Array:
    """Returns sum_ik targets_ik phi_ik ([dim]) for features [num_samples, K, dim] and targets [num_samples, K]."""
    return jnp.einsum("nk,nkd->d", targets, features, precision="highest")


@in_64_bits
def _lengths(features: jax.Array) -> jax.Array:
    """Returns each sample's largest distance between two actions' features, rounded up.

    The result is [num_samples] float.
    """
    wide = features.astype(jnp.float64)
    shifts = range(1, features.shape[1] // 2 + 1)  # cyclic shifts by at most K / 2 pair every action with every other
    distances = [feature_norms(wide - jnp.roll(wide, shift, axis=1)) for shift in shifts]
    return cast_up(jnp.max(jnp.stack(distances), axis=(0, 2)), features.dtype)


def _no_ridge(features: jax.Array) -> jax.Array:
    return jnp.zeros((), features.dtype)


def _choice_estimator(
    params: Callable[..., Any],
    claim: Callable[..., Guarantee],
    privatize: Callable[..., Any],
    objective: Callable[..., Objective],
    **options: Any,
) -> Estimator:
    base = full_batch_estimator(params, claim, privatize, objective, **options)

    def fit(key, params, features, report):
        return base.fit(key, params, relative(features), report)

    return base._replace(fit=fit, check=check_choices)

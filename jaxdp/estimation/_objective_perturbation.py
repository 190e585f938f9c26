"""Objective perturbation for label privacy, as what it is: a Gaussian mechanism on the labels' sufficient statistic.

Where the lines of Algorithm 2 of DP-Reward (Chowdhury, Zhou & Natarajan, 2023) are found here, for
`objective_perturbation`. Labels enter the logistic loss through S = sum_i y_i x_i alone, and so the paper's w, which
stands beside them, may as well be noise on S:

* 1: beta is `Params.regularization`, and the ball Theta_B `Params.radius`.
* 2: w is S - S~. `release_statistic` draws it, and reports S~ = S + noise; sigma is `noise_multiplier` times what
  `sensitivity_unit` gives: L with the paper's constants, else the largest |x_i|.
* 3: `statistic_objective` is l_D(theta) + (beta / 2n) |theta|^2 + w.theta / n, written with S~; `full_batch_estimator`
  finds its minimiser.
"""

import jax
import jax.numpy as jnp
import optax

from jaxdp.core import Estimator, Guarantee, claimed, reusing_factory
from jaxdp.estimation._sgd import estimate_without_certificate
from jaxdp.estimation.constraints import center
from jaxdp.estimation.label_noise import LabelNoise, search_basis
from jaxdp.estimation.maximum_likelihood import MAX_STEPS, full_batch_estimator
from jaxdp.estimation.noisy_statistic import (
    Params,
    Release,
    Weighted,
    check_release,
    cut_of,
    noise_stddev,
    release_statistic,
    sensitivity_unit,
    statistic_claim,
    statistic_params,
)
from jaxdp.estimation.objectives import Objective, label_loss, statistic_objective
from jaxdp.estimation.one_pass import AVERAGES, Pass, Recipe, one_pass
from jaxdp.estimation.public_weights import cut_weights, feature_norms
from jaxdp.estimation.solver import Estimate
from jaxdp.mechanisms import gaussian
from jaxdp.preferences import logistic
from jaxdp.validation import check_choice

PAPER = Release("paper", "none", "gaussian")


def _rows(features: jax.Array) -> jax.Array:
    """The rows x / 2, [num_samples, 1, dim] float, whose squares x x^T / 4 are the Fisher information at theta = 0."""
    return features[:, None, :] / 2


def _report_statistic(release: Release, zero_sum: bool):
    def privatize(key, params: Params, features, labels):
        features = center(features) if zero_sum else features
        terms = features * jnp.clip(labels, 0, 1).astype(features.dtype)[:, None]
        basis = search_basis(features, zero_sum=zero_sum)
        sizes, lengths = jnp.abs(features), feature_norms(features)
        return release_statistic(key, params, terms, sizes, lengths, lambda: _rows(features), release, basis)

    return privatize


@reusing_factory
def objective_perturbation(
    *,
    constants: str = "analytic",
    weights: str = "none",
    noise: str = "gaussian",
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int = MAX_STEPS,
) -> Estimator:
    """Central label-private maximum likelihood under BTL: the logistic loss with a noisy sufficient statistic.

    Minimises (1/n) sum_i w_i log(1 + exp(x_i.theta)) - S~.theta / n + (beta / 2n) |theta|^2 over |theta| <= radius,
    where S~ = sum_i w_i y_i x_i + noise, and w_i are weights. With all w_i = 1 this is the paper's objective, whose
    vector w is S - S~.

    Features are public, and so may be the weights that depend on them: `weights="cut"` takes w_i = min(1, c / |x_i|),
    which keeps the estimate consistent and lowers the sensitivity from max |x_i| to c. The c of least predicted error
    (`predicted_errors`) lies near the 10% quantile of |x_i| for Gaussian features, and halves the error at epsilon =
    0.1. `noise="k_norm"` gives pure epsilon-DP, for about the same error in few dimensions.

    Args:
        constants: of Gaussian noise: "analytic", "classical" (raises for finite epsilon >= 1) or "paper".
        weights: "none", or "cut".
        noise: "gaussian", or "k_norm", which takes no delta.
        zero_sum: constrain sum(theta) = 0; features are centred first, which only lowers their norms. K-norm noise
            then lies in the dim - 1 dimensions that are left.
        optimizer: as for `mle`.
        max_steps: gradient evaluations at most, >= 1.

    Returns:
        An estimator of theta from features [num_samples, dim] float and labels [num_samples] int in {0, 1}. Its
        `params` take epsilon, delta, and radius (default inf), regularization beta (0), tolerance (1e-5); for
        weights="cut" cut, c (0: that of least predicted error; infinity: no cut); and for constants="paper"
        feature_norm L (inf, or below half the largest |x_i|: that half). Its report is S~, with weights a `WithCut`.

    Raises:
        ValueError: if a name is unknown, constants are chosen for noise or weights that do not have them, or
            max_steps < 1; from `params`, if epsilon <= 0, delta is outside (0, 1), a value is out of range, or
            classical constants meet finite epsilon >= 1.

    Privacy:
        - Claim: (epsilon, delta)-DP in the central model, with K-norm noise epsilon-DP.
        - Unit: one label; adjacency: replace one.
        - Sensitivity: A label enters through S alone, with L2 sensitivity max w_i |x_i| over the public features (at
          most 2 L, or c): another label moves S by w_i (y - y') x_i, and |y - y'| <= 1 for labels in {0, 1/2, 1}, too.
          The cut depends on features alone, never on labels. The minimiser is post-processing, so an approximate one,
          any beta >= 0 and any constraint are covered.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorem 5.2, Algorithm 2; K-norm noise: Hardt & Talwar (2010).
        The weights are this library's.

    Deviations:
        The noise is on S and calibrated by the analytic Gaussian mechanism at sensitivity max w_i |x_i|;
        `constants="paper"` takes sigma = L sqrt(8 log(2/delta) + 4 epsilon) / epsilon. The paper's proof needs the
        exact minimiser and beta > 0; neither is needed here. The paper has neither weights nor pure privacy. Terms of S
        are rounded to multiples of at most 2^-59 n of the largest one, and summed as integers; noise is made for what
        rounding can add to a label's term, and rounded to its own grid, as in `gaussian` and `k_norm`.
    """
    release = check_release(constants, weights, noise)

    def objective(params: Params, features, report, scale) -> Objective:
        ridge = jnp.asarray(params.regularization, features.dtype) / scale**2
        if not release.is_weighted:
            return statistic_objective(features, report / scale, ridge)
        weighted = Weighted.of(feature_norms(features * jnp.broadcast_to(scale, features.shape)), report, scale)
        return statistic_objective(features, weighted.statistic, ridge / weighted.mean, weighted.weights)

    def label_noise(params: Params, features) -> LabelNoise:
        lengths = feature_norms(center(features) if zero_sum else features)
        basis = search_basis(features, zero_sum=zero_sum)
        spread, beta = jnp.ones((), features.dtype), jnp.asarray(params.regularization, features.dtype)
        unit, weights = sensitivity_unit(params, lengths, release), None
        if release.is_weighted:
            # The cut of the report, which is not seen here: it is computed anew, from the same features.
            unit = cut_of(params, lengths, _rows(center(features) if zero_sum else features), release, basis)
            weights = cut_weights(lengths, unit)
        if release.noise == "k_norm":
            scale = unit / jnp.asarray(params.epsilon, features.dtype)
            return LabelNoise(spread, jnp.zeros_like(scale), beta, basis, weights, scale)
        return LabelNoise(spread, jnp.asarray(params.noise_multiplier, features.dtype) * unit, beta, basis, weights)

    return full_batch_estimator(
        statistic_params("objective_perturbation", release, "tolerance"),
        statistic_claim(release),
        _report_statistic(release, zero_sum),
        objective,
        zero_sum=zero_sum,
        optimizer=optimizer,
        max_steps=max_steps,
        noise=label_noise,
    )


@reusing_factory
def sgd_objective_perturbation(
    *,
    constants: str = "analytic",
    weights: str = "none",
    noise: str = "gaussian",
    average: str = "last_half",
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
) -> Estimator:
    """One pass of projected SGD on the objective of `objective_perturbation`.

    The gradient of sample t is w_t sigmoid(x_t.theta) x_t - S~ / n + (beta / n) theta: the labels enter through S~
    alone. Weights are divided by their mean, and S~ with them, so that steps stay of one size.

    Args:
        constants: as for `objective_perturbation`.
        weights: as for `objective_perturbation`.
        noise: as for `objective_perturbation`.
        average: "none" (last iterate), "all" or "last_half" of the iterates.
        zero_sum: constrain sum(theta) = 0.
        optimizer: an Optax optimiser in place of SGD with a constant learning_rate.

    Returns:
        An estimator as `objective_perturbation`. Its `params` take learning_rate (0.1) in place of tolerance.

    Raises:
        ValueError: as `objective_perturbation`, and if average is unknown.

    Privacy:
        - As `objective_perturbation`; the iterates are post-processing of S~.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 6 ("objective perturbation using SGD updates").

    Deviations:
        The paper's updates use raw labels, which its Theorem 5.2 does not cover (`literal_objective_perturbation`);
        averaging is offered, and on by default.
    """
    release = check_release(constants, weights, noise)
    check_choice("average", average, AVERAGES)

    def fit(key, params: Params, features, report) -> Estimate:
        del key
        unlabelled = jnp.zeros(features.shape[0], features.dtype)  # slope at y = 0 is sigmoid(z)
        if not release.is_weighted:
            return _one_pass(params, features, unlabelled, -report, zero_sum, optimizer, average)
        lengths = feature_norms(center(features) if zero_sum else features)
        weighted = Weighted.of(lengths, report, jnp.ones((), features.dtype))
        return _one_pass(params, features, unlabelled, -weighted.statistic, zero_sum, optimizer, average, weighted)

    params = statistic_params("sgd_objective_perturbation", release, "learning_rate")
    report = _report_statistic(release, zero_sum)
    return Estimator(params, claimed(params, statistic_claim(release)), report, fit, features_public=True)


@reusing_factory
def literal_objective_perturbation(
    *, average: str = "none", optimizer: optax.GradientTransformation | None = None
) -> Estimator:
    """The paper's simulation as its text reads: SGD on raw labels, with the linear term w / n in every gradient.

    It exists to reproduce the published figure. With a constant step the last iterate's error does not fall with n.

    Args:
        average: "none" (last iterate), "all" or "last_half" of the iterates.
        optimizer: an Optax optimiser in place of SGD with a constant learning_rate.

    Returns:
        An estimator as `sgd_objective_perturbation`.

    Raises:
        ValueError: as `sgd_objective_perturbation`.

    Privacy:
        - No claim is made.
        - Theorem 5.2 covers the exact minimiser of the perturbed objective; an SGD iterate is a different function of
          the raw labels, and what w hides of it has not been proved.

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), section 6, with sigma of Theorem 5.2.

    Deviations:
        How w and beta enter a step is not stated in the paper; w / n and (beta / n) theta are assumed.
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
    return Estimator(params, claimed(params, claim), privatize, fit, features_public=True)


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
    """SGD on (1/n) sum_i w_i loss(x_i.theta, targets_i) + linear.theta / n + (beta / 2n) |theta|^2."""
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

"""Objective perturbation for label privacy, as what it is: a Gaussian mechanism on the labels' sufficient statistic."""

from collections.abc import Callable
from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdp import compensated
from jaxdp.core import Estimator, Guarantee, Scalar, claimed, default_float, factory, only, scalar_leaf
from jaxdp.estimation.constraints import center
from jaxdp.estimation.label_noise import LabelNoise, searched
from jaxdp.estimation.maximum_likelihood import MAX_STEPS, TOLERANCE, full_batch_estimator
from jaxdp.estimation.objectives import Objective, label_loss, statistic_objective
from jaxdp.estimation.one_pass import AVERAGES, Pass, Recipe, one_pass
from jaxdp.estimation.sgd import unconfirmed
from jaxdp.estimation.solver import Estimate
from jaxdp.mechanisms import analytic_gaussian, classical_gaussian, gaussian, round_up
from jaxdp.preferences import logistic
from jaxdp.validation import check_above, check_at_least, check_choice, check_delta, check_epsilon

CONSTANTS = ("analytic", "classical", "paper")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """What a sweep may vary.

    Attributes:
        noise_multiplier: [] float >= 0, noise standard deviation per unit of feature norm; 0 at epsilon = inf.
        feature_norm: [] float > 0, bound L on an action's feature norm that the paper's sigma needs; infinity takes
            half the largest norm of a differential feature, which suffices. Other constants do not read it.
        regularization: [] float >= 0, beta, in the scale of the sum over samples.
        radius: [] float > 0, bound B on the parameter's norm; infinity is no bound.
        learning_rate: [] float > 0, of the SGD form only.
        tolerance: [] float > 0, on the norm of the projected gradient of the mean objective; exact form only.
    """

    noise_multiplier: Scalar
    feature_norm: Scalar
    regularization: Scalar
    radius: Scalar
    learning_rate: Scalar
    tolerance: Scalar


def noise_multiplier(epsilon: float, delta: float, constants: str) -> float:
    """Noise standard deviation per unit of feature norm, on the host in float64.

    Args:
        epsilon: privacy budget, in (0, inf].
        delta: in (0, 1).
        constants: "analytic" or "classical" (per unit of the largest |x_i|, the sensitivity of the statistic), or
            "paper" (per unit of L, where |x_i| <= 2 L).

    Returns:
        The multiplier, >= 0.

    Raises:
        ValueError: if epsilon, delta or constants is out of range, or classical is asked for at finite epsilon >= 1.
    """
    check_epsilon(epsilon)
    check_delta(delta)
    check_choice("constants", constants, CONSTANTS)
    if constants == "analytic":
        return analytic_gaussian(epsilon, delta)
    if constants == "classical":
        return classical_gaussian(epsilon, delta)
    return float(np.sqrt(8 * np.log(2 / delta) / epsilon**2 + 4 / epsilon))  # Theorem 5.2, and 0 at infinity


def noise_stddev(params: Params, features: jax.Array, constants: str) -> jax.Array:
    """The noise's standard deviation for these public differential features ([..., dim] float -> [] float)."""
    norm = jnp.max(jnp.linalg.norm(features, axis=-1))
    if constants == "paper":
        bound = jnp.asarray(params.feature_norm, features.dtype)
        norm = jnp.where(jnp.isinf(bound), norm / 2, jnp.maximum(bound, norm / 2))  # a bound too small protects nobody
    return jnp.asarray(params.noise_multiplier, features.dtype) * norm


def perturbation_params(owner: str, constants: str, reads: str) -> Callable[..., Params]:
    """The `params` of an estimator of this name from a noisy statistic, which reads the value `reads` as well."""

    def params(
        *,
        epsilon: float,
        delta: float,
        feature_norm: float = np.inf,
        regularization: float = 0.0,
        radius: float = np.inf,
        learning_rate: float = 0.1,
        tolerance: float = TOLERANCE,
    ) -> Params:
        return Params(
            noise_multiplier=round_up(noise_multiplier(epsilon, delta, constants), default_float()),
            feature_norm=scalar_leaf("feature_norm", check_above("feature_norm", feature_norm, 0.0)),
            regularization=scalar_leaf("regularization", check_at_least("regularization", regularization, 0.0)),
            radius=scalar_leaf("radius", check_above("radius", radius, 0.0)),
            learning_rate=scalar_leaf("learning_rate", check_above("learning_rate", learning_rate, 0.0)),
            tolerance=scalar_leaf("tolerance", check_above("tolerance", tolerance, 0.0)),
        )

    params.__qualname__ = f"{owner}.params"  # whose values they are, for errors
    read = {"epsilon", "delta", "regularization", "radius", reads}  # a value that would not be read is refused
    return only(params, read | ({"feature_norm"} if constants == "paper" else set()))


def statistic_claim(epsilon: float, delta: float) -> Guarantee:
    """The claim of every estimator that sees labels through a noisy sufficient statistic only."""
    return Guarantee.approximate(
        epsilon,
        delta,
        trust_model="central",
        privacy_unit="one label",
        argument="none: epsilon is infinite, so that no noise is added"
        if np.isinf(epsilon)
        else "labels enter through a sum alone, whose L2 sensitivity is the largest norm of a public differential "
        "feature; it is released once with Gaussian noise, and the estimate is post-processing",
    )


def exact_statistic(terms: jax.Array) -> compensated.Sum:
    """The sum over samples of terms [num_samples, dim], which noise is added to: off by far less than one of them.

    A float32 sum of many terms is rounded by more than a single label moves it, and would be hidden less than claimed.
    """
    return compensated.fold(compensated.zero(terms)._replace(total=terms), 0)


def _report_statistic(constants: str, zero_sum: bool):
    def privatize(key, params: Params, features, labels):
        features = center(features) if zero_sum else features
        statistic = exact_statistic(features * labels.astype(features.dtype)[:, None])
        return gaussian(key, statistic, noise_stddev(params, features, constants))

    return privatize


@factory
def objective_perturbation(
    *,
    constants: str = "analytic",
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
    max_steps: int = MAX_STEPS,
) -> Estimator:
    """Central label-private maximum likelihood under BTL: the logistic loss with a noisy sufficient statistic.

    Minimises (1/n) sum_i log(1 + exp(x_i.theta)) - S~.theta / n + (beta / 2n) |theta|^2 over |theta| <= radius, where
    S~ = sum_i y_i x_i + N(0, sigma^2 I). This is the paper's objective with w = S - S~.

    Privacy: (epsilon, delta)-DP in the central model; unit: one label; adjacency: replace one. A label enters through
        S alone, with L2 sensitivity max |x_i| over the public features (at most 2 L). The minimiser is post-processing,
        so an approximate one, any beta >= 0 and any constraint are covered.
    Source: DP-Reward, Theorem 5.2, Algorithm 2.
    Deviations: the noise is on S and calibrated by the analytic Gaussian mechanism at sensitivity max |x_i|;
        `constants="paper"` takes sigma = L sqrt(8 log(2/delta) + 4 epsilon) / epsilon. The paper's proof needs
        the exact minimiser and beta > 0; neither is needed here.

    Args:
        constants: "analytic", "classical" (raises for finite epsilon >= 1) or "paper".
        zero_sum: constrain sum(theta) = 0; features are centred first, which only lowers their norms.
        optimizer: as for `mle`.
        max_steps: gradient evaluations at most, >= 1.

    Returns:
        An estimator of theta from features [num_samples, dim] float and labels [num_samples] int in {0, 1}. Its
        `params` take epsilon, delta, and radius (default inf), regularization beta (0), tolerance (1e-5), and for
        constants="paper" feature_norm L (inf, or below half the largest |x_i|: that half).

    Raises:
        ValueError: if constants is unknown or max_steps < 1; from `params`, if epsilon <= 0, delta is outside (0, 1), a
            value is out of range, or classical constants meet finite epsilon >= 1.
    """
    check_choice("constants", constants, CONSTANTS)

    def objective(params: Params, features, report, scale) -> Objective:
        ridge = jnp.asarray(params.regularization, features.dtype) / scale**2
        return statistic_objective(features, report / scale, ridge)

    def noise(params: Params, features) -> LabelNoise:
        beta = jnp.asarray(params.regularization, features.dtype)
        stddev = noise_stddev(params, center(features) if zero_sum else features, constants)
        return LabelNoise(jnp.ones((), features.dtype), stddev, beta, searched(features, zero_sum=zero_sum))

    return full_batch_estimator(
        perturbation_params("objective_perturbation", constants, "tolerance"),
        statistic_claim,
        _report_statistic(constants, zero_sum),
        objective,
        zero_sum=zero_sum,
        optimizer=optimizer,
        max_steps=max_steps,
        noise=noise,
    )


@factory
def sgd_objective_perturbation(
    *,
    constants: str = "analytic",
    average: str = "last_half",
    zero_sum: bool = False,
    optimizer: optax.GradientTransformation | None = None,
) -> Estimator:
    """One pass of projected SGD on the objective of `objective_perturbation`.

    The gradient of sample t is sigmoid(x_t.theta) x_t - S~ / n + (beta / n) theta: the labels enter through S~ alone.

    Privacy: as `objective_perturbation`; the iterates are post-processing of S~.
    Source: DP-Reward, section 6 ("objective perturbation using SGD updates").
    Deviations: the paper's updates use raw labels, which its Theorem 5.2 does not cover
        (`literal_objective_perturbation`); averaging is offered, and on by default.

    Args:
        constants: as for `objective_perturbation`.
        average: "none" (last iterate), "all" or "last_half" of the iterates.
        zero_sum: constrain sum(theta) = 0.
        optimizer: an Optax optimiser in place of SGD with a constant learning_rate.

    Returns:
        An estimator as `objective_perturbation`. Its `params` take learning_rate (0.1) in place of tolerance.

    Raises:
        ValueError: as `objective_perturbation`, and if average is unknown.
    """
    check_choice("constants", constants, CONSTANTS)
    check_choice("average", average, AVERAGES)

    def fit(key, params: Params, features, report) -> Estimate:
        del key
        unlabelled = jnp.zeros(features.shape[0], features.dtype)  # slope at y = 0 is sigmoid(z)
        return _one_pass(params, features, unlabelled, -report, zero_sum, optimizer, average)

    params = perturbation_params("sgd_objective_perturbation", constants, "learning_rate")
    report = _report_statistic(constants, zero_sum)
    return Estimator(params, claimed(params, statistic_claim), report, fit, features_public=True)


@factory
def literal_objective_perturbation(
    *, average: str = "none", optimizer: optax.GradientTransformation | None = None
) -> Estimator:
    """DP-Reward's simulation as its text reads: SGD on raw labels, with the linear term w / n in every gradient.

    It exists to reproduce the published figure. With a constant step the last iterate's error does not fall with n.

    Privacy: no claim is made. Theorem 5.2 covers the exact minimiser of the perturbed objective; an SGD iterate is a
        different function of the raw labels, and what w hides of it has not been proved.
    Source: DP-Reward, section 6, with sigma of Theorem 5.2.  Deviations: how w and beta enter a step is not stated in
        the paper; w / n and (beta / n) theta are assumed.

    Args:
        average: "none" (last iterate), "all" or "last_half" of the iterates.
        optimizer: an Optax optimiser in place of SGD with a constant learning_rate.

    Returns:
        An estimator as `sgd_objective_perturbation`.

    Raises:
        ValueError: as `sgd_objective_perturbation`.
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
        return labels, gaussian(key, w, noise_stddev(params, features, "paper"))

    def fit(key, params: Params, features, report) -> Estimate:
        del key
        labels, w = report
        return _one_pass(params, features, labels.astype(features.dtype), w, False, optimizer, average)

    params = perturbation_params("literal_objective_perturbation", "paper", "learning_rate")
    return Estimator(params, claimed(params, claim), privatize, fit, features_public=True)


def _one_pass(params: Params, features, targets, linear, zero_sum: bool, optimizer, average: str) -> Estimate:
    """SGD on (1/n) sum_i loss(x_i.theta, targets_i) + linear.theta / n + (beta / 2n) |theta|^2."""
    dtype, num_samples = features.dtype, features.shape[0]
    data = Pass(
        features=center(features) if zero_sum else features,
        targets=targets,
        gain=jnp.ones((), dtype),
        rate=jnp.asarray(params.learning_rate, dtype),
        radius=jnp.asarray(params.radius, dtype),
        linear=linear / num_samples,
        ridge=jnp.asarray(params.regularization, dtype) / num_samples,
    )
    recipe = Recipe(label_loss(logistic).slope, average, inverse_time=False, zero_sum=zero_sum)
    return unconfirmed(one_pass(data, recipe, optimizer), num_samples)

"""Confidence sets around an estimate, from public features and the noise that privacy adds. They cost no privacy."""

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.estimation.maximum_likelihood import report_clear, report_randomized
from jaxdp.estimation.objective_perturbation import CONSTANTS, noise_stddev, objective_perturbation
from jaxdp.estimation.solver import Estimate
from jaxdp.learner import Estimator, Scalar, scalar_leaf
from jaxdp.validation import check_at_least, check_choice, check_within

FAILURE_PROB = 0.1
_TOLD = ("radius", "feature_norm")  # what a problem may make known, and the wrapped estimator reads


class ConfidenceSet(NamedTuple):
    """The ellipsoid {theta : |theta - center|_shape <= width}, |v|_shape = sqrt(v.shape.v).

    Attributes:
        center: [dim] float, the estimate.
        shape: [dim, dim] float, positive definite: Sigma_D + ridge I.
        width: [] float >= 0.
    """

    center: jax.Array
    shape: jax.Array
    width: jax.Array

    def contains(self, theta: jax.Array) -> jax.Array:
        """Whether theta ([dim] float) lies in the set: [] bool."""
        shift = theta - self.center
        return shift @ jnp.matmul(self.shape, shift, precision="highest") <= self.width**2


class LabelNoise(NamedTuple):
    """What stands between the labels and the logistic objective that was minimised.

    Attributes:
        spread: [] float >= 1, length of the interval in which each label's unbiased version lies.
        statistic_stddev: [] float >= 0, of Gaussian noise on sum_i y_i x_i.
        regularization: [] float >= 0, beta, in the scale of the sum over samples.
    """

    spread: jax.Array
    statistic_stddev: jax.Array
    regularization: jax.Array


NoiseFn = Callable[[Any, jax.Array], LabelNoise]  # (the estimator's params, features) -> LabelNoise


def clear_labels(params: Any, features: jax.Array) -> LabelNoise:
    """The noise of `mle`: none but the labels' own."""
    del params
    zero = jnp.zeros((), features.dtype)
    return LabelNoise(zero + 1, zero, zero)


def randomized_labels(params: Any, features: jax.Array) -> LabelNoise:
    """The noise of `debiased_rr`: unbiased labels lie 1 / tanh(epsilon / 2) apart."""
    zero = jnp.zeros((), features.dtype)
    return LabelNoise(1 / jnp.tanh(jnp.asarray(params.epsilon, features.dtype) / 2), zero, zero)


@dataclasses.dataclass(frozen=True)
class _NoisyStatistic:
    constants: str

    def __call__(self, params: Any, features: jax.Array) -> LabelNoise:
        beta = jnp.asarray(params.regularization, features.dtype)
        stddev = noise_stddev(params, features, self.constants)
        return LabelNoise(jnp.ones((), features.dtype), stddev, beta)


def noisy_statistic(constants: str = "analytic") -> NoiseFn:
    """The noise of `objective_perturbation` with these constants.

    Raises:
        ValueError: if constants is unknown.
    """
    return _NoisyStatistic(check_choice("constants", constants, CONSTANTS))


def _check_noise(estimator: Estimator, noise: NoiseFn) -> None:
    """Raises ValueError where a noise of this file is not the estimator's; a noise of the user's own is taken."""
    logistic = estimator.link == "logistic"
    if noise is clear_labels:
        fits, name, owner = logistic and estimator.privatize is report_clear, "clear_labels", "mle()"
    elif noise is randomized_labels:
        fits, name, owner = logistic and estimator.privatize is report_randomized, "randomized_labels", "debiased_rr()"
    elif isinstance(noise, _NoisyStatistic):
        right, point = objective_perturbation(constants=noise.constants), {"epsilon": 0.5, "delta": 1e-3}
        alike = inspect.signature(estimator.params) == inspect.signature(right.params)
        fits = alike and estimator.params(**point) == right.params(**point)  # they calibrate alike
        name, owner = f"noisy_statistic({noise.constants!r})", f"objective_perturbation(constants={noise.constants!r})"
    else:
        return
    if not fits:
        raise ValueError(f"noise must be the estimator's own, got {name}, which is that of {owner}")


def confidence_set(
    theta: jax.Array,
    features: jax.Array,
    noise: LabelNoise,
    *,
    ridge: jax.Array,
    radius: jax.Array,
    failure_prob: jax.Array,
    curvature: jax.Array,
) -> ConfidenceSet:
    """The set of Theorem 4.2 with explicit constants, for minimisers of the logistic objective over a ball.

    width = [G + sqrt(G^2 + 16 gamma^2 ridge radius^2)] / (2 gamma) <= G / gamma + 2 sqrt(ridge) radius, where
    gamma = min over i of sigmoid'(radius |x_i|), and with mu_j the eigenvalues of Sigma_D, t = ln(1 / failure_prob),
    q_j = [spread^2 mu_j / (4 n) + statistic_stddev^2 / n^2] / (mu_j + ridge),
    G = sqrt(sum q_j + 2 sqrt(t sum q_j^2) + 2 t max q_j) + (beta / n) radius / sqrt(min mu_j + ridge).

    Why: with D = theta - theta* and g the gradient of the mean objective at theta*, optimality over the ball gives
    gamma |D|^2_Sigma <= -g.D, so that gamma |D|^2_A <= |g|_(1/A) |D|_A + 4 gamma ridge radius^2 for A = Sigma_D +
    ridge I, as |D| <= 2 radius. Given the features g is linear in independent centred variables: labels, which are
    sub-Gaussian with variance proxy spread^2 / 4 (Hoeffding), and the Gaussian noise. The tail of such a quadratic form
    (Hsu, Kakade & Zhang, 2012, Theorem 2.1) bounds |g|_(1/A) by G. For one label noise this is DP-Reward's eq. (7)
    with C = sqrt(3) / 2 and C' = 2.

    Privacy: post-processing of the estimate; everything else is public (features, and the noise's law).
    Source: DP-Reward, Theorem 4.2 and its proof.
    Deviations: constants are explicit; the trace of A^-1 Sigma_D stands in place of its bound d; Gaussian noise on the
        statistic is covered by the same argument.

    Args:
        theta: [dim] float, the minimiser.
        features: [num_samples, dim] float.
        noise: of the labels.
        ridge: [] float >= 0, lambda; 0 needs features that span all directions.
        radius: [] float > 0, of the ball that was minimised over; it must contain the truth. Infinity needs ridge = 0
            and curvature > 0, and a noise without regularization.
        failure_prob: [] float in (0, 1).
        curvature: [] float in [0, 1/4]; it replaces gamma where it is larger. 0 is what can be proved: gamma falls
            exponentially with radius |x_i|, and the set soon holds everything. 1/4 is the curvature at even odds,
            the largest there is: a heuristic.

    Returns:
        The set. Each of its truths holds with probability >= 1 - failure_prob if curvature is at most gamma, up to how
        exactly the objective was minimised. Features that are not finite give NaN.
    """
    dtype, num_samples = features.dtype, features.shape[0]
    covariance = jnp.matmul(features.T, features, precision="highest") / num_samples
    spectrum = jnp.maximum(jnp.linalg.eigvalsh(covariance), 0)
    scaled = spectrum + ridge
    longest = jnp.max(jnp.linalg.norm(features, axis=1))
    gamma = jnp.maximum(jax.nn.sigmoid(radius * longest) * jax.nn.sigmoid(-radius * longest), curvature)
    shares = (noise.spread**2 * spectrum / (4 * num_samples) + (noise.statistic_stddev / num_samples) ** 2) / scaled
    tail = -jnp.log(failure_prob)
    gradient = jnp.sqrt(
        jnp.sum(shares) + 2 * jnp.sqrt(tail * jnp.sum(shares**2)) + 2 * tail * jnp.max(shares)
    ) + _times(noise.regularization / num_samples, radius / jnp.sqrt(jnp.min(scaled)))
    bias = 4 * _times(gamma * jnp.sqrt(ridge), radius)
    width = (gradient + jnp.sqrt(gradient**2 + bias**2)) / (2 * gamma)
    return ConfidenceSet(theta, covariance + ridge * jnp.eye(features.shape[1], dtype=dtype), width)


def _times(factor: jax.Array, other: jax.Array) -> jax.Array:
    """The product, and 0 where the first factor is, whatever the other."""
    return jnp.where(factor > 0, factor * jnp.where(factor > 0, other, 1), 0)


class ConfidentEstimate(NamedTuple):
    """An `Estimate` with a confidence set around it.

    Attributes:
        theta: as of `Estimate`, and so are certificate, steps and converged.
        certificate: see there.
        steps: see there.
        converged: see there.
        confidence: the set.
    """

    theta: jax.Array
    certificate: jax.Array
    steps: jax.Array
    converged: jax.Array
    confidence: ConfidenceSet


@jax.tree_util.register_dataclass
@dataclasses.dataclass(frozen=True, kw_only=True)
class Params:
    """What a sweep may vary.

    Attributes:
        inner: the wrapped estimator's.
        radius: [] float > 0, of the wrapped estimator, which gets it from here.
        feature_norm: [] float > 0, of the wrapped estimator, which gets it from here if it has one.
        ridge: [] float >= 0, lambda.
        failure_prob: [] float in (0, 1).
        curvature: [] float in [0, 1/4], see `confidence_set`.
    """

    inner: Any
    radius: Scalar
    feature_norm: Scalar
    ridge: Scalar
    failure_prob: Scalar
    curvature: Scalar


def with_confidence(estimator: Estimator, noise: NoiseFn) -> Estimator:
    """The same estimator, whose estimate comes with the confidence set of `confidence_set`.

    Privacy: as the estimator; the set is post-processing of its estimate.
    Source: as `confidence_set`.  Deviations: none beyond those.

    Args:
        estimator: `mle`, `debiased_rr` or `objective_perturbation`, with the logistic link.
        noise: of that estimator: `clear_labels`, `randomized_labels` or `noisy_statistic(constants)`. A function of
            your own is not checked: one that tells too little noise makes sets that miss the truth.

    Returns:
        An estimator whose `fit` gives a `ConfidentEstimate`. Its `params` take ridge (default 0), failure_prob (0.1)
        and curvature (0: what can be proved) beside what the estimator's take.

    Raises:
        ValueError: if noise is one of the three and not the estimator's; from `params`, if ridge < 0, failure_prob is
            outside (0, 1), curvature is outside [0, 1/4], or radius is infinite with ridge > 0, curvature = 0 or
            regularization > 0, where the set would hold everything.
    """
    _check_noise(estimator, noise)
    own = {"ridge": 0.0, "failure_prob": FAILURE_PROB, "curvature": 0.0}

    def params(**values: Any) -> Params:
        bound = signature.bind(**values)
        bound.apply_defaults()
        mine = {name: bound.arguments[name] for name in own}
        inner = estimator.params(**{name: value for name, value in values.items() if name not in own})
        check_at_least("ridge", mine["ridge"], 0.0)
        if not 0 < mine["failure_prob"] < 1:
            raise ValueError(f"failure_prob must be in (0, 1), got {mine['failure_prob']}")
        check_within("curvature", mine["curvature"], 0.0, 0.25)
        if np.isinf(inner.radius) and (mine["ridge"] > 0 or mine["curvature"] == 0):
            raise ValueError(
                f"radius must be finite unless ridge is 0 and curvature > 0, got {inner.radius} where ridge is "
                f"{mine['ridge']} and curvature {mine['curvature']}"
            )
        if np.isinf(inner.radius) and (beta := getattr(inner, "regularization", 0.0)) > 0:
            raise ValueError(f"radius must be finite unless regularization is 0, got {inner.radius} where it is {beta}")
        told = {name: getattr(inner, name, scalar_leaf(name, np.inf)) for name in _TOLD}
        return Params(inner=inner, **told, **{name: scalar_leaf(name, value) for name, value in mine.items()})

    def wrapped(params: Params) -> Any:
        told = {name: getattr(params, name) for name in _TOLD if hasattr(params.inner, name)}
        return dataclasses.replace(params.inner, **told)

    def guarantee(**values: Any):
        params(**values)
        return estimator.guarantee(**{name: value for name, value in values.items() if name not in own})

    def privatize(key, params: Params, features, labels):
        return estimator.privatize(key, wrapped(params), features, labels)

    def fit(key, params: Params, features, report) -> ConfidentEstimate:
        inner = wrapped(params)
        estimate: Estimate = estimator.fit(key, inner, features, report)
        leaves = {name: jnp.asarray(getattr(params, name), features.dtype) for name in ("radius", *own)}
        return ConfidentEstimate(
            *estimate, confidence=confidence_set(estimate.theta, features, noise(inner, features), **leaves)
        )

    theirs = inspect.signature(estimator.params).parameters.values()
    extra = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in own.items()]
    signature = inspect.Signature([*theirs, *extra])
    params.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return Estimator(params, guarantee, privatize, fit)

"""Confidence sets around an estimate, from public features and the known distribution of the privacy noise.

Symbols of DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (7), in the code: alpha is failure_prob, lambda is ridge,
B is radius, Sigma_D + lambda I is the set's shape, and gamma is computed from B or is `curvature`, whichever is larger.
"""

import dataclasses
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.checks import check_made
from jaxdp.core import Estimator, Scalar, reusing_factory, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.estimation.label_noise import LabelNoise
from jaxdp.estimation.solver import Estimate
from jaxdp.numerics.eigen import eigh
from jaxdp.numerics.products import product
from jaxdp.validation import check_at_least, check_number, check_probability, check_within

FAILURE_PROB = 0.1
_SHARED = ("radius", "feature_norm")  # values that a problem may supply and that the wrapped estimator uses too


class ConfidenceSet(NamedTuple):
    """The ellipsoid {theta : |theta - center|_shape <= width}, with |v|_shape = sqrt(v^T shape v).

    Attributes:
        center: [dim] float, the estimate.
        shape: [dim, dim] float, Sigma_D + ridge I, computed from weighted samples. It is zero on vectors orthogonal to
            the span of basis. If width is not NaN, it is positive definite on this span.
        width: [] float >= 0; NaN if shape is singular on the span of basis, up to rounding.
        basis: [dim, rank] float, orthonormal columns that span the differences theta - center; None means the whole
            space. For estimators with `zero_sum`, basis spans the vectors that sum to zero.
    """

    center: jax.Array
    shape: jax.Array
    width: jax.Array
    basis: jax.Array | None = None

    def contains(self, theta: jax.Array) -> jax.Array:
        """Returns whether theta ([dim] float) lies in the set, ignoring directions orthogonal to basis.

        The result is [] bool.
        """
        shift = theta - self.center
        return shift @ jnp.matmul(self.shape, shift, precision="highest") <= self.width**2

    def inner_shape(self) -> jax.Array:
        """Returns the shape in the coordinates of basis, [rank, rank] float; without a basis, the shape itself."""
        return self.shape if self.basis is None else product(self.basis.T, product(self.shape, self.basis))

    def whitened(self, vectors: jax.Array) -> jax.Array:
        """Multiplies vectors by shape^(-1/2), in orthonormal coordinates of the span of basis.

        Args:
            vectors: [..., dim] float; parts orthogonal to basis are dropped.

        Returns:
            [..., rank] float; NaN if shape is not positive definite on the span of basis, up to rounding. Over the set,
            the maximum of v.(theta - center) is width times the norm of v's transform.
        """
        flat = vectors.reshape(-1, vectors.shape[-1])
        flat = flat if self.basis is None else product(flat, self.basis)
        values, directions = eigh(self.inner_shape())
        positive = values > values.shape[0] * jnp.finfo(values.dtype).eps * values[-1]
        solved = product(flat, directions) / jnp.where(jnp.all(positive), jnp.sqrt(values), jnp.nan)[None, :]
        return solved.reshape(*vectors.shape[:-1], solved.shape[-1])

    def interval(self, direction: jax.Array) -> tuple[jax.Array, jax.Array]:
        """Returns the minimum and the maximum of direction^T theta over the set.

        If the true parameter lies in the set, the intervals of all directions cover their true values simultaneously,
        without a correction for multiple intervals.

        Args:
            direction: [..., dim] float; under `zero_sum` its mean is subtracted.

        Returns:
            Low and high, [...] float each; NaN if width or the result of `whitened` is NaN.
        """
        middle = product(direction, self.center)
        reach = self.width * jnp.linalg.norm(self.whitened(direction), axis=-1)
        return middle - reach, middle + reach

    def pairwise(self, first: int, second: int) -> tuple[jax.Array, jax.Array]:
        """Returns the interval of theta[first] - theta[second]: for items, the log odds that first beats second.

        Args:
            first: index of a coordinate.
            second: index of another coordinate.

        Returns:
            Low and high, [] float each, as `interval`.

        Raises:
            ValueError: if an index is out of range, or both are equal.
        """
        dim = self.center.shape[0]
        for name, index in (("first", first), ("second", second)):
            if not 0 <= index < dim:
                raise ValueError(f"{name} must be in [0, {dim}), got {index}")
        if first == second:
            raise ValueError(f"second must differ from first, got {second}")
        return self.interval(jnp.zeros_like(self.center).at[first].set(1).at[second].set(-1))


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
    """Builds the set of Theorem 4.2 with explicit constants, for minimisers of the logistic objective over a ball.

    The set is the ellipsoid |theta' - theta|_A <= width with A = Sigma_D + ridge I, where Sigma_D is the mean of w_i
    x_i x_i^T, and width = [G + sqrt(G^2 + 16 gamma^2 ridge radius^2)] / (2 gamma) <= G / gamma + 2 * sqrt(ridge) *
    radius. gamma = min over i of sigmoid'(radius |x_i|) is the least curvature of the loss. With probability 1 -
    failure_prob, G bounds the gradient of the objective at the true parameter, in the norm of A^-1.
    `docs/proofs/confidence_sets.md` has the formula of G and the proof.

    If theta is sought in a subspace (`zero_sum`), all of this happens in the subspace: directions that comparisons
    cannot determine appear neither in the shape nor in the noise.

    Args:
        theta: [dim] float, the minimiser.
        features: [num_samples, dim] float.
        noise: the noise between the labels and the minimised objective.
        ridge: [] float >= 0, lambda; at 0 the width is NaN unless features span the subspace in which theta is sought.
        radius: [] float > 0, radius of the ball of the minimisation; the ball must contain the true parameter. Infinity
            requires ridge = 0, curvature > 0 and noise.regularization = 0.
        failure_prob: [] float in (0, 1).
        curvature: [] float in [0, 1/4]; replaces gamma if it is larger. Coverage is proven only if it is at most gamma,
            as 0 always is. But gamma falls exponentially with radius |x_i|, so for a large radius this set contains the
            whole ball. The maximum, 1/4, is the curvature at even odds; it is a heuristic.

    Returns:
        The set. If curvature is at most gamma, the set contains the true parameter with probability >= 1 -
        failure_prob, up to the error of the minimisation. Features that are not finite give NaN. If the shape is
        singular up to rounding, the width is NaN: `contains` is then always False, and intervals and policies are NaN.

    Raises:
        ValueError: if the subspace in which theta is sought has dimension 0, as under `zero_sum` with one feature, or
            the noise is in whitened coordinates.

    Privacy:
        - Post-processing of the estimate; everything else is public (features, and the distribution of the noise).

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorem 4.2 and its proof.

    Deviations:
        Constants are explicit; the trace of A^-1 Sigma_D replaces its bound d; the proof also covers weights, and noise
        on the statistic.
    """
    if noise.back is not None:
        raise ValueError("noise must be isotropic for a confidence set, got noise in whitened coordinates")
    dtype, num_samples = features.dtype, features.shape[0]
    basis = noise.basis
    searched_features = features if basis is None else product(features, basis)
    rank = searched_features.shape[1]
    if rank < 1:
        raise ValueError(f"features must have at least two dimensions under zero_sum, got shape {features.shape}")
    weights = jnp.ones(num_samples, dtype) if noise.weights is None else noise.weights
    covariance = product((weights[:, None] * searched_features).T, searched_features) / num_samples
    spectrum, directions = eigh(covariance)
    shape_eigenvalues = jnp.maximum(spectrum, 0) + ridge  # eigenvalues of A, with the same eigenvectors
    longest = jnp.max(jnp.linalg.norm(searched_features, axis=1))
    gamma = jnp.maximum(jax.nn.sigmoid(radius * longest) * jax.nn.sigmoid(-radius * longest), curvature)
    whitened = product(weights[:, None] * searched_features, directions) / jnp.sqrt(shape_eigenvalues)[None, :]
    # The labels' part of A^(-1/2) Q A^(-1/2), where Q bounds the covariance of the gradient's noise.
    label_part = (noise.spread / (2 * num_samples)) ** 2 * product(whitened.T, whitened)

    def deviation(stddev: jax.Array, failure_prob: jax.Array) -> jax.Array:
        """Returns a bound ([] float) on the norm |g|_(A^-1) of the gradient's noise g.

        The bound holds except with probability at most `failure_prob`. `stddev` is the standard deviation of the noise
        on the statistic.
        """
        q = eigh(label_part + jnp.diag((stddev / num_samples) ** 2 / shape_eigenvalues)).values
        tail = -jnp.log(failure_prob)
        return jnp.sqrt(jnp.sum(q) + 2 * jnp.sqrt(tail * jnp.sum(q**2)) + 2 * tail * jnp.max(q))

    if noise.k_norm_scale is None:
        bound = deviation(noise.statistic_stddev, failure_prob)
    else:
        half = failure_prob / 2
        stddev = noise.k_norm_scale * jnp.sqrt(2 * gamma_quantile((rank + 1) / 2, half))
        longest_noise = (
            noise.k_norm_scale * gamma_quantile(rank, half) / (num_samples * jnp.sqrt(jnp.min(shape_eigenvalues)))
        )
        bound = jnp.minimum(
            deviation(jnp.hypot(noise.statistic_stddev, stddev), half),
            deviation(noise.statistic_stddev, half) + longest_noise,
        )
    bound = bound + _times(noise.regularization / num_samples, radius / jnp.sqrt(jnp.min(shape_eigenvalues)))  # G
    bias = 4 * _times(gamma * jnp.sqrt(ridge), radius)
    width = (bound + jnp.sqrt(bound**2 + bias**2)) / (2 * gamma)
    # An eigenvalue this close to 0 may be a rounding error.
    regular = jnp.min(shape_eigenvalues) > rank * jnp.finfo(dtype).eps * jnp.max(shape_eigenvalues)
    shape = covariance + ridge * jnp.eye(rank, dtype=dtype)
    if basis is not None:
        shape = product(basis, product(shape, basis.T))
    return ConfidenceSet(theta, shape, jnp.where(regular, width, jnp.nan), basis)


def gamma_quantile(shape: float, tail: jax.Array) -> jax.Array:
    """Returns a number that a Gamma(shape, 1) variable exceeds with probability <= tail, up to rounding.

    The result is [] float.
    """
    high = shape + jnp.sqrt(2 * shape * -jnp.log(tail)) - jnp.log(tail)  # Boucheron, Lugosi & Massart (2013), ch. 2.4
    size = jnp.asarray(shape, tail.dtype)

    def halve(_: Any, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = (low + high) / 2
        enough = jax.scipy.special.gammaincc(size, middle) <= tail
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    return jax.lax.fori_loop(0, 40, halve, (jnp.zeros_like(high), high))[1]


def _times(factor: jax.Array, other: jax.Array) -> jax.Array:
    """Multiplies two numbers; the product is 0 if the first is 0, even if the second is infinite."""
    return jnp.where(factor > 0, factor * jnp.where(factor > 0, other, 1), 0)


class ConfidentEstimate(NamedTuple):
    """An `Estimate` with a confidence set around it.

    Attributes:
        theta: [dim] float, the estimate.
        certificate: [] float >= 0, norm of the projected gradient at theta, as in `Estimate`.
        steps: [] int32, number of gradient evaluations.
        converged: [] bool, whether the solver converged.
        confidence: the confidence set.
    """

    theta: jax.Array
    certificate: jax.Array
    steps: jax.Array
    converged: jax.Array
    confidence: ConfidenceSet


@pytree_dataclass
class Params:
    """Values that a sweep may vary.

    Attributes:
        inner: the `params` of the wrapped estimator.
        radius: [] float > 0, used in place of the radius in inner.
        feature_norm: [] float > 0, used in place of the feature_norm in inner, if inner has this value.
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


@reusing_factory
def with_confidence(estimator: Estimator) -> Estimator:
    """Returns an estimator like the given one that adds a confidence set to its estimate.

    Args:
        estimator: an estimator that has `Estimator.noise` and public features: `mle`, `debiased_rr` or
            `objective_perturbation` (with isotropic noise), with the logistic link.

    Returns:
        An estimator with the same claim; its `fit` returns a `ConfidentEstimate`. Its `params` also take ridge (default
        0), failure_prob (0.1) and curvature (0, for which coverage is proven). For this estimator,
        `estimate` takes neither `intervals` nor `offset`.

    Raises:
        ValueError: if estimator is not an `Estimator`, has no `noise` or keeps features private. The result's `params`
            raises this error if ridge is < 0 or infinite, failure_prob is outside (0, 1), curvature is outside
            [0, 1/4], or radius is infinite with ridge > 0, curvature = 0 or regularization > 0, since the set would
            then contain everything.
            `estimate` raises it if ridge is too small for features that do not span all directions.

    Privacy:
        - As the estimator; the set is post-processing of its estimate and of public features.

    Source:
        As `confidence_set`.

    Deviations:
        As `confidence_set`.
    """
    check_made("estimator", estimator, Estimator)
    noise = estimator.noise
    if noise is None or not estimator.features_public:
        raise ValueError(
            "estimator must have Estimator.noise and public features, as mle, debiased_rr and objective_perturbation "
            f"with the logistic link do, got noise {noise} and features_public {estimator.features_public}"
        )
    defaults = {"ridge": 0.0, "failure_prob": FAILURE_PROB, "curvature": 0.0}

    def params(**values: Any) -> Params:
        bound = signature.bind(**values)
        bound.apply_defaults()
        set_values = {name: bound.arguments[name] for name in defaults}
        inner = estimator.params(**{name: value for name, value in values.items() if name not in defaults})
        check_at_least("ridge", check_number("ridge", set_values["ridge"]), 0.0)
        check_probability("failure_prob", set_values["failure_prob"])
        check_within("curvature", set_values["curvature"], 0.0, 0.25)
        if np.isinf(inner.radius) and (set_values["ridge"] > 0 or set_values["curvature"] == 0):
            raise ValueError(
                f"radius must be finite unless ridge is 0 and curvature > 0, got {inner.radius} with ridge "
                f"{set_values['ridge']} and curvature {set_values['curvature']}"
            )
        if np.isinf(inner.radius) and (beta := getattr(inner, "regularization", 0.0)) > 0:
            raise ValueError(
                f"radius must be finite unless regularization is 0, got {inner.radius} with regularization {beta}"
            )
        shared = {name: getattr(inner, name, scalar_leaf(name, np.inf)) for name in _SHARED}
        return Params(inner=inner, **shared, **{name: scalar_leaf(name, value) for name, value in set_values.items()})

    def inner_params(params: Params) -> Any:
        shared = {name: getattr(params, name) for name in _SHARED if hasattr(params.inner, name)}
        return dataclasses.replace(params.inner, **shared)

    def guarantee(**values: Any):
        params(**values)
        return estimator.guarantee(**{name: value for name, value in values.items() if name not in defaults})

    def privatize(key, params: Params, features, labels):
        return estimator.privatize(key, inner_params(params), features, labels)

    def fit(key, params: Params, features, report) -> ConfidentEstimate:
        inner = inner_params(params)
        estimate: Estimate = estimator.fit(key, inner, features, report)
        leaves = {name: jnp.asarray(getattr(params, name), features.dtype) for name in ("radius", *defaults)}
        return ConfidentEstimate(
            estimate.theta,
            estimate.certificate,
            estimate.steps,
            estimate.converged,
            confidence=confidence_set(estimate.theta, features, noise(inner, features), **leaves),
        )

    def check_estimate(estimate: ConfidentEstimate) -> None:
        if estimator.check_estimate is not None:
            estimator.check_estimate(estimate)
        if np.isfinite(estimate.theta).all() and np.isnan(estimate.confidence.width):
            eigenvalues = np.linalg.eigvalsh(np.nan_to_num(estimate.confidence.inner_shape()))
            raise ValueError(
                "ridge must be > 0, and larger than rounding errors, if features do not span all directions, "
                f"got eigenvalues of second moment plus ridge from {eigenvalues[0]:.2g} to {eigenvalues[-1]:.2g}"
            )

    estimator_parameters = inspect.signature(estimator.params).parameters.values()
    extra = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in defaults.items()]
    signature = inspect.Signature([*estimator_parameters, *extra])
    for function in (params, guarantee):
        function.__signature__ = signature
    return Estimator(
        params, guarantee, privatize, fit, estimator.check, check_estimate, features_public=estimator.features_public
    )

"""Confidence sets around an estimate, from public features and the noise that privacy adds. They cost no privacy.

In eq. (7) of DP-Reward (Chowdhury, Zhou & Natarajan, 2023) alpha is failure_prob, lambda is ridge, and Sigma_D +
lambda I is the set's shape; B is radius, and gamma is computed from it unless curvature is larger.
"""

import dataclasses
import inspect
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.checks import check_made
from jaxdp.core import Estimator, Scalar, reusing_factory, scalar_leaf
from jaxdp.estimation.label_noise import LabelNoise
from jaxdp.estimation.solver import Estimate
from jaxdp.numerics.eigen import eigh
from jaxdp.validation import check_at_least, check_probability, check_within

FAILURE_PROB = 0.1
_TOLD = ("radius", "feature_norm")  # what a problem may make known, and the wrapped estimator reads


class ConfidenceSet(NamedTuple):
    """The ellipsoid {theta : |theta - center|_shape <= width}, |v|_shape = sqrt(v.shape.v).

    Attributes:
        center: [dim] float, the estimate.
        shape: [dim, dim] float, positive definite on the span of basis, and zero on what is orthogonal to it:
            Sigma_D + ridge I within the span, of samples with their weights.
        width: [] float >= 0; NaN where shape is singular within the span, to rounding.
        basis: [dim, rank] float, orthonormal columns that span the differences theta - center; None is all. Under
            `zero_sum` it is the differences that sum to zero.
    """

    center: jax.Array
    shape: jax.Array
    width: jax.Array
    basis: jax.Array | None = None

    def contains(self, theta: jax.Array) -> jax.Array:
        """Whether theta ([dim] float) lies in the set, up to what no comparison tells (see basis): [] bool."""
        shift = theta - self.center
        return shift @ jnp.matmul(self.shape, shift, precision="highest") <= self.width**2

    def inner_shape(self) -> jax.Array:
        """The shape in the coordinates of basis, where it is positive definite: [rank, rank] float."""
        return self.shape if self.basis is None else _product(self.basis.T, _product(self.shape, self.basis))

    def whitened(self, vectors: jax.Array) -> jax.Array:
        """The vectors in coordinates where the set is a ball of radius width.

        Args:
            vectors: [..., dim] float; parts that are orthogonal to basis are dropped.

        Returns:
            [..., rank] float; v.(theta - center) is at most width times its norm, and reaches it.
        """
        flat = vectors.reshape(-1, vectors.shape[-1])
        flat = flat if self.basis is None else _product(flat, self.basis)
        values, directions = eigh(self.inner_shape())
        positive = values > values.shape[0] * jnp.finfo(values.dtype).eps * values[-1]
        solved = _product(flat, directions) / jnp.where(jnp.all(positive), jnp.sqrt(values), jnp.nan)[None, :]
        return solved.reshape(*vectors.shape[:-1], solved.shape[-1])

    def interval(self, direction: jax.Array) -> tuple[jax.Array, jax.Array]:
        """The least and the largest direction.theta over the set.

        All intervals hold together whenever the truth lies in the set, in however many directions: none has to be made
        wider because there are others.

        Args:
            direction: [..., dim] float; under `zero_sum` it stands for itself less its mean.

        Returns:
            Low and high, [...] float each; NaN where width is.
        """
        middle = _product(direction, self.center)
        reach = self.width * jnp.linalg.norm(self.whitened(direction), axis=-1)
        return middle - reach, middle + reach

    def pairwise(self, first: int, second: int) -> tuple[jax.Array, jax.Array]:
        """The interval of theta[first] - theta[second]: of items, the log odds that first beats second.

        Args:
            first: index of a coordinate.
            second: of another.

        Returns:
            Low and high, [] float each, as `interval`.

        Raises:
            ValueError: if an index is no coordinate's, or both are the same.
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
    """The set of Theorem 4.2 with explicit constants, for minimisers of the logistic objective over a ball.

    width = [G + sqrt(G^2 + 16 gamma^2 ridge radius^2)] / (2 gamma) <= G / gamma + 2 sqrt(ridge) radius, where
    gamma = min over i of sigmoid'(radius |x_i|). With Sigma_D the mean of w_i x_i x_i^T, A = Sigma_D + ridge I,
    t = ln(1 / failure_prob) and q_j the eigenvalues of A^(-1/2) Q A^(-1/2), where
    Q = (spread^2 / (4 n^2)) sum w_i^2 x_i x_i^T + (statistic_stddev^2 / n^2) I,
    G = sqrt(sum q_j + 2 sqrt(t sum q_j^2) + 2 t max q_j) + (beta / n) radius / sqrt(min eigenvalue of A).

    K-norm noise of scale b in d dimensions is Gaussian noise whose variance 2 b^2 Y is itself random, Y ~ Gamma((d +
    1) / 2); its length is Gamma(d, b). Half of failure_prob goes to it. G is the lesser of two bounds, of which each
    holds with the probability asked for: with the other half for the Gaussian noise of the variance that has been
    reached; or of the labels' part with the other half, plus the length's quantile over n sqrt(min eigenvalue of A).

    Why: with D = theta - theta* and g the gradient of the mean objective at theta*, optimality over the ball gives
    gamma |D|^2_Sigma <= -g.D, so that gamma |D|^2_A <= |g|_(1/A) |D|_A + 4 gamma ridge radius^2 for A = Sigma_D +
    ridge I, as |D| <= 2 radius. Given the features g is linear in independent centred variables: labels, which are
    sub-Gaussian with variance proxy (spread w_i)^2 / 4 (Hoeffding), and the Gaussian noise. The tail of such a
    quadratic form (Hsu, Kakade & Zhang, 2012, Theorem 2.1) bounds |g|_(1/A) by G. For one label noise this is
    DP-Reward (Chowdhury, Zhou & Natarajan, 2023), eq. (7) with C = sqrt(3) / 2 and C' = 2.

    Where the parameters that were searched span less than the space (`zero_sum`), all of this happens within the span:
    what comparisons cannot tell, and so neither estimate nor truth can err in, is part of neither shape nor noise.

    Args:
        theta: [dim] float, the minimiser.
        features: [num_samples, dim] float.
        noise: of the labels.
        ridge: [] float >= 0, lambda; 0 needs features that span all directions that were searched.
        radius: [] float > 0, of the ball that was minimised over; it must contain the truth. Infinity needs ridge = 0
            and curvature > 0, and a noise without regularization.
        failure_prob: [] float in (0, 1).
        curvature: [] float in [0, 1/4]; it replaces gamma where it is larger. 0 is what can be proved: gamma falls
            exponentially with radius |x_i|, and the set soon holds everything. 1/4 is the curvature at even odds,
            the largest there is: a heuristic.

    Returns:
        The set. It holds the truth with probability >= 1 - failure_prob if curvature is at most gamma, up to how
        exactly the objective was minimised. Features that are not finite give NaN, and a shape that is singular to
        rounding gives a width of NaN, with which the set holds nothing, intervals are NaN, and so are policies.

    Raises:
        ValueError: if nothing was searched, as under `zero_sum` in one dimension.

    Privacy:
        - Post-processing of the estimate; everything else is public (features, and the noise's law).

    Source:
        DP-Reward (Chowdhury, Zhou & Natarajan, 2023), Theorem 4.2 and its proof.

    Deviations:
        Constants are explicit; the trace of A^-1 Sigma_D stands in place of its bound d; weights, and noise on the
        statistic, are covered by the same argument.
    """
    dtype, num_samples = features.dtype, features.shape[0]
    basis = noise.basis
    within = features if basis is None else _product(features, basis)
    rank = within.shape[1]
    if rank < 1:
        raise ValueError(f"features must have at least two dimensions under zero_sum, got shape {features.shape}")
    weights = jnp.ones(num_samples, dtype) if noise.weights is None else noise.weights
    covariance = _product((weights[:, None] * within).T, within) / num_samples
    spectrum, directions = eigh(covariance)
    of_shape = jnp.maximum(spectrum, 0) + ridge  # the eigenvalues of A, in the same directions
    longest = jnp.max(jnp.linalg.norm(within, axis=1))
    gamma = jnp.maximum(jax.nn.sigmoid(radius * longest) * jax.nn.sigmoid(-radius * longest), curvature)
    whitened = _product(weights[:, None] * within, directions) / jnp.sqrt(of_shape)[None, :]
    by_labels = (noise.spread / (2 * num_samples)) ** 2 * _product(whitened.T, whitened)  # of A^(-1/2) Q A^(-1/2)

    def deviation(stddev: jax.Array, failure_prob: jax.Array) -> jax.Array:
        """The first term of G, which |g|_(1/A) exceeds with at most this probability, with noise of this stddev."""
        q = eigh(by_labels + jnp.diag((stddev / num_samples) ** 2 / of_shape)).values
        tail = -jnp.log(failure_prob)
        return jnp.sqrt(jnp.sum(q) + 2 * jnp.sqrt(tail * jnp.sum(q**2)) + 2 * tail * jnp.max(q))

    if noise.k_norm_scale is None:
        bound = deviation(noise.statistic_stddev, failure_prob)
    else:
        half = failure_prob / 2
        stddev = noise.k_norm_scale * jnp.sqrt(2 * gamma_quantile((rank + 1) / 2, half))
        longest_noise = noise.k_norm_scale * gamma_quantile(rank, half) / (num_samples * jnp.sqrt(jnp.min(of_shape)))
        bound = jnp.minimum(
            deviation(jnp.hypot(noise.statistic_stddev, stddev), half),
            deviation(noise.statistic_stddev, half) + longest_noise,
        )
    bound = bound + _times(noise.regularization / num_samples, radius / jnp.sqrt(jnp.min(of_shape)))  # G
    bias = 4 * _times(gamma * jnp.sqrt(ridge), radius)
    width = (bound + jnp.sqrt(bound**2 + bias**2)) / (2 * gamma)
    # What rounding leaves of an eigenvalue that is 0 tells nothing of its direction.
    regular = jnp.min(of_shape) > rank * jnp.finfo(dtype).eps * jnp.max(of_shape)
    shape = covariance + ridge * jnp.eye(rank, dtype=dtype)
    if basis is not None:
        shape = _product(basis, _product(shape, basis.T))
    return ConfidenceSet(theta, shape, jnp.where(regular, width, jnp.nan), basis)


def gamma_quantile(shape: float, tail: jax.Array) -> jax.Array:
    """What a Gamma(shape, 1) variable exceeds with probability at most tail, up to rounding: [] float.

    Args:
        shape: > 0, static.
        tail: [] float in (0, 1).
    """
    high = shape + jnp.sqrt(2 * shape * -jnp.log(tail)) - jnp.log(tail)  # Boucheron, Lugosi & Massart (2013), ch. 2.4
    size = jnp.asarray(shape, tail.dtype)

    def halve(_: Any, ends: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
        low, high = ends
        middle = (low + high) / 2
        enough = jax.scipy.special.gammaincc(size, middle) <= tail
        return jnp.where(enough, low, middle), jnp.where(enough, middle, high)

    return jax.lax.fori_loop(0, 40, halve, (jnp.zeros_like(high), high))[1]


def _product(left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.matmul(left, right, precision="highest")


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


@reusing_factory
def with_confidence(estimator: Estimator) -> Estimator:
    """The same estimator, whose estimate comes with the confidence set of `confidence_set`.

    Args:
        estimator: one that carries its own label noise (`Estimator.noise`) and whose privacy unit leaves features
            public: `mle`, `debiased_rr` or `objective_perturbation`, with the logistic link.

    Returns:
        An estimator whose `fit` gives a `ConfidentEstimate`. Its `params` take ridge (default 0), failure_prob (0.1)
        and curvature (0: what can be proved) beside what the estimator's take.

    Raises:
        ValueError: if the estimator has no label noise of its own or keeps features private; from `params`, if
            ridge < 0, failure_prob is outside (0, 1), curvature is outside [0, 1/4], or radius is infinite with
            ridge > 0, curvature = 0 or regularization > 0, where the set would hold everything; from `estimate`, if
            ridge is too small for features that do not span all directions.

    Privacy:
        - As the estimator; the set is post-processing of its estimate and of public features.

    Source:
        As `confidence_set`.

    Deviations:
        None beyond those.
    """
    check_made("estimator", estimator, Estimator)
    noise = estimator.noise
    if noise is None or not estimator.features_public:
        raise ValueError(
            "estimator must carry its own label noise and leave features public, as mle, debiased_rr and "
            f"objective_perturbation with the logistic link do, got noise {noise} and features_public "
            f"{estimator.features_public}"
        )
    own = {"ridge": 0.0, "failure_prob": FAILURE_PROB, "curvature": 0.0}

    def params(**values: Any) -> Params:
        bound = signature.bind(**values)
        bound.apply_defaults()
        mine = {name: bound.arguments[name] for name in own}
        inner = estimator.params(**{name: value for name, value in values.items() if name not in own})
        check_at_least("ridge", mine["ridge"], 0.0)
        check_probability("failure_prob", mine["failure_prob"])
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

    def check_estimate(estimate: ConfidentEstimate) -> None:
        if estimator.check_estimate is not None:
            estimator.check_estimate(estimate)
        if np.isfinite(estimate.theta).all() and np.isnan(estimate.confidence.width):
            eigenvalues = np.linalg.eigvalsh(np.nan_to_num(estimate.confidence.inner_shape()))
            raise ValueError(
                "ridge must be > 0 and beyond rounding where features do not span all directions, got "
                f"eigenvalues from {eigenvalues[0]:.2g} to {eigenvalues[-1]:.2g} of their second moment with it"
            )

    theirs = inspect.signature(estimator.params).parameters.values()
    extra = [inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=value) for name, value in own.items()]
    signature = inspect.Signature([*theirs, *extra])
    for function in (params, guarantee):
        function.__signature__ = signature
    return Estimator(
        params, guarantee, privatize, fit, estimator.check, check_estimate, features_public=estimator.features_public
    )

"""Covariances of estimates, for standard errors and intervals: the sandwich V = H^-1 M H^-1 / n of M-estimators.

H is the mean curvature of the losses and M is the mean square of their slopes, both at the estimate. If M is computed
from labels or reports, V holds even if the model of the labels is wrong (Huber, 1967). If an estimator uses labels only
through a noisy statistic, M is computed from the model and the noise's covariance, and V holds only if the model is
right. Labels are taken as independent, also labels of one person.
"""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.estimation.label_noise import LabelNoise
from jaxdp.estimation.objectives import Loss
from jaxdp.numerics.eigen import Eigen, eigh
from jaxdp.numerics.products import product


class Covariance(NamedTuple):
    """The covariance of an estimate.

    Attributes:
        matrix: [dim, dim] float; zero in directions orthogonal to the subspace in which theta is sought. NaN if
            features do not determine theta in this subspace.
        is_robust: [] bool, whether the covariance also holds if the model of the labels is wrong.
        from_information: [] bool, whether the covariance is the inverse Fisher information, because the curvature is
            not positive definite.
    """

    matrix: jax.Array
    is_robust: jax.Array
    from_information: jax.Array | bool = False


def likelihood_covariance(
    features: jax.Array,
    targets: jax.Array,
    theta: jax.Array,
    loss: Loss,
    *,
    basis: jax.Array | None,
    weights: jax.Array | None = None,
    information: Callable[[jax.Array], jax.Array] | None = None,
) -> Covariance:
    """Computes the sandwich covariance of the minimiser of a mean loss of margins.

    Args:
        features: [num_samples, dim] float.
        targets: [num_samples] float, labels or reports in the form that the loss takes.
        theta: [dim] float, the minimiser.
        loss: the loss of one sample.
        basis: [dim, rank] float, orthonormal columns that span the subspace in which theta is sought; None means the
            whole space.
        weights: [num_samples] float >= 0, weights of the samples' losses; None means that all are 1.
        information: margins -> [num_samples] float, Fisher information of one report about its margin. If the observed
            curvature is not positive definite, the covariance is computed from this information instead. None means
            that the observed curvature is always used, even if it is indefinite.
    """
    columns = features if basis is None else product(features, basis)
    margins = product(features, theta)
    weights = jnp.ones_like(margins) if weights is None else weights
    curvature = eigh(_mean_square(columns, weights * loss.curvature(margins, targets)))
    middle = _mean_square(columns, (weights * loss.slope(margins, targets)) ** 2)
    matrix, is_robust = _sandwich(curvature, middle, len(targets)), jnp.asarray(True)
    if information is not None:
        is_robust = curvature.values[0] > 0
        fisher = _mean_square(columns, weights * information(margins))
        matrix = jnp.where(is_robust, matrix, _sandwich(eigh(fisher), fisher, len(targets)))
    return Covariance(_embed(matrix, basis), is_robust, ~is_robust)


def statistic_covariance(features: jax.Array, theta: jax.Array, noise: LabelNoise) -> Covariance:
    """Computes the covariance of the minimiser of a logistic objective with a noisy statistic of the labels.

    V = H^-1 [(1/n) sum_i w_i^2 sigmoid'(z_i) x_i x_i^T + N / n] H^-1 / n with H = (1/n) sum_i w_i sigmoid'(z_i) x_i
    x_i^T + (beta / n) I. Here z_i = x_i^T theta, w_i is `noise.weights`, and beta is `noise.regularization`. N is the
    covariance of the noise on the statistic: s^2 I for Gaussian noise with s = `noise.statistic_stddev`, and (r + 1)
    b^2 I for K-norm noise in r dimensions with b = `noise.k_norm_scale`. If the noise is drawn in whitened coordinates,
    with this covariance C, then N = back^T C back with `noise.back`. Labels are not released, so the middle factor
    comes from the model, and V is wrong if the model is wrong. V does not contain the bias that beta adds.
    """
    columns = features if noise.basis is None else product(features, noise.basis)
    count, rank = columns.shape
    margins = product(features, theta)
    weights = jnp.ones_like(margins) if noise.weights is None else noise.weights
    slopes = jax.nn.sigmoid(margins) * jax.nn.sigmoid(-margins)
    identity = jnp.eye(rank, dtype=columns.dtype)
    variance = noise.statistic_stddev**2
    if noise.k_norm_scale is not None:
        variance = variance + (rank + 1) * noise.k_norm_scale**2
    curvature = eigh(_mean_square(columns, weights * slopes) + noise.regularization / count * identity)
    shape = identity
    if noise.back is not None:
        back = noise.back if noise.basis is None else product(noise.back, noise.basis)
        shape = product(back.T, back)
    middle = _mean_square(columns, weights**2 * slopes) + variance / count * shape
    return Covariance(_embed(_sandwich(curvature, middle, count), noise.basis), jnp.asarray(False))


def _sandwich(curvature: Eigen, middle: jax.Array, count: int) -> jax.Array:
    """Returns H^-1 M H^-1 / n for the curvature H and the middle factor M; NaN if H is singular up to rounding."""
    sizes = jnp.abs(curvature.values)
    is_singular = ~(jnp.min(sizes) > len(sizes) * jnp.finfo(sizes.dtype).eps * jnp.max(sizes))
    inverse = product(curvature.vectors / curvature.values[None, :], curvature.vectors.T)
    return jnp.where(is_singular, jnp.nan, product(product(inverse, middle), inverse) / count)


def _mean_square(columns: jax.Array, weights: jax.Array) -> jax.Array:
    """Returns the mean over samples of w_i x_i x_i^T. The result is [rank, rank] float."""
    return product(columns.T * weights[None, :], columns) / len(weights)


def _embed(matrix: jax.Array, basis: jax.Array | None) -> jax.Array:
    return matrix if basis is None else product(basis, product(matrix, basis.T))

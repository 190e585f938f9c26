"""Describes the noise that privacy adds to labels or to the objective, for confidence sets and standard errors.

Also computes the scale of Gaussian noise on a statistic.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import NoiseFn
from jaxdp.mechanisms import analytic_gaussian, classical_gaussian
from jaxdp.validation import check_choice, check_delta, check_epsilon

CONSTANTS = ("analytic", "classical", "paper")


class LabelNoise(NamedTuple):
    """The noise that privacy adds to labels, or to the logistic objective that is minimised.

    Attributes:
        spread: [] float >= 1, length of an interval that contains the unbiased estimate of each label.
        statistic_stddev: [] float >= 0, standard deviation of Gaussian noise on sum_i w_i y_i x_i, in every direction
            of the span of basis.
        regularization: [] float >= 0, beta: beta / 2 * |theta|^2 is added to the sum, not the mean, of the losses.
        basis: [dim, rank] float, orthonormal columns that span the subspace in which theta is sought; None means the
            whole space.
        weights: [num_samples] float >= 0, weights of the samples in sum_i w_i y_i x_i and in the objective; None means
            that all are 1.
        k_norm_scale: [] float >= 0, scale of K-norm noise on the statistic in the span of basis: the noise's density is
            proportional to exp(-|z| / k_norm_scale). None means no K-norm noise.
        back: [dim, dim] float, the map from whitened to original coordinates. The noise z, with the two scales above,
            is drawn in whitened coordinates, and z @ back is added to the statistic. None means that z itself is added.
    """

    spread: jax.Array
    statistic_stddev: jax.Array
    regularization: jax.Array
    basis: jax.Array | None = None
    weights: jax.Array | None = None
    k_norm_scale: jax.Array | None = None
    back: jax.Array | None = None


def search_basis(features: jax.Array, *, zero_sum: bool) -> jax.Array | None:
    """Returns a basis of the subspace in which an estimator seeks theta, for `LabelNoise.basis`.

    Args:
        features: [num_samples, dim] float.
        zero_sum: whether parameters sum to zero. The basis then consists of columns 2 to dim of the reflection that
            maps the first unit vector to -(1, ..., 1) / sqrt(dim).

    Returns:
        [dim, dim - 1] float; None if there is no constraint.
    """
    if not zero_sum:
        return None
    dim, dtype = features.shape[1], features.dtype
    ones = jnp.full(dim, dim**-0.5, dtype)
    mirror = ones.at[0].add(1)  # subtracting would cancel digits
    return (jnp.eye(dim, dtype=dtype) - mirror[:, None] * mirror[None, :] / mirror[0])[:, 1:]


def randomized_labels(zero_sum: bool) -> NoiseFn:
    """Returns `Estimator.noise` for randomized labels; their two de-biased values are 1 / tanh(epsilon / 2) apart.

    If samples differ in epsilon, the smallest counts. `zero_sum` says whether the estimator constrains theta to sum to
    zero.
    """

    def noise(params: Any, features: jax.Array) -> LabelNoise:
        zero = jnp.zeros((), features.dtype)
        smallest = jnp.min(jnp.asarray(params.epsilon, features.dtype))  # epsilon is [], or [num_samples]
        spread = 1 / jnp.tanh(smallest / 2)
        return LabelNoise(spread, zero, zero, search_basis(features, zero_sum=zero_sum))

    return noise


def noise_multiplier(epsilon: float, delta: float, constants: str) -> float:
    """Returns the scale of Gaussian noise divided by `noisy_statistic.sensitivity_unit`, on the host in float64.

    Args:
        epsilon: privacy budget, in (0, inf].
        delta: in (0, 1).
        constants: "analytic" or "classical" (divided by the sensitivity of the statistic), or "paper" (divided by L,
            where |x_i| <= 2 L).

    Returns:
        The multiplier: a standard deviation divided by the unit, >= 0.

    Raises:
        ValueError: if epsilon, delta or constants is out of range; if constants is "classical" at finite epsilon >= 1;
            or if epsilon is so small that the multiplier overflows.
    """
    epsilon = check_epsilon(epsilon)
    check_delta(delta)
    check_choice("constants", constants, CONSTANTS)
    if constants == "analytic":
        return analytic_gaussian(epsilon, delta)
    if constants == "classical":
        return classical_gaussian(epsilon, delta)
    # DP-Reward, Theorem 5.2: the square is 8 ln(2 / delta) / epsilon^2 + 4 / epsilon; 0 at infinity
    multiplier = math.hypot(math.sqrt(8 * math.log(2 / delta)) / epsilon, 2 / math.sqrt(epsilon))
    if math.isinf(multiplier):
        raise ValueError(f"epsilon must be large enough for the noise to be finite, got {epsilon}")
    return multiplier

"""What stands between labels and the objective that is minimised: what confidence sets have to know of an estimator."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import NoiseFn


class LabelNoise(NamedTuple):
    """What stands between the labels and the logistic objective that was minimised.

    Attributes:
        spread: [] float >= 1, length of the interval in which each label's unbiased version lies.
        statistic_stddev: [] float >= 0, of Gaussian noise on sum_i y_i x_i, in every direction that was searched.
        regularization: [] float >= 0, beta, in the scale of the sum over samples.
        basis: [dim, rank] float, orthonormal columns that span the parameters that were searched; None is all.
        weights: [num_samples] float >= 0, of the samples, in sum_i w_i y_i x_i and the objective; None is all 1.
        k_norm_scale: [] float >= 0, of K-norm noise on the statistic, in every direction that was searched: its density
            is in proportion to exp(-|z| / k_norm_scale). None is no such noise.
    """

    spread: jax.Array
    statistic_stddev: jax.Array
    regularization: jax.Array
    basis: jax.Array | None = None
    weights: jax.Array | None = None
    k_norm_scale: jax.Array | None = None


def searched(features: jax.Array, *, zero_sum: bool) -> jax.Array | None:
    """The basis of the parameters that an estimator from these features searches, as `LabelNoise` has it.

    Args:
        features: [num_samples, dim] float.
        zero_sum: whether parameters sum to zero. Columns 2 to dim of the reflection that takes the first axis to the
            direction (1, ..., 1) are then the basis.

    Returns:
        [dim, dim - 1] float, or None without the constraint.
    """
    if not zero_sum:
        return None
    dim, dtype = features.shape[1], features.dtype
    ones = jnp.full(dim, dim**-0.5, dtype)
    mirror = ones.at[0].add(1)  # not the difference, which cancels
    return (jnp.eye(dim, dtype=dtype) - mirror[:, None] * mirror[None, :] / mirror[0])[:, 1:]


def randomized_labels(zero_sum: bool) -> NoiseFn:
    """The noise of de-biased randomized labels, which lie 1 / tanh(epsilon / 2) apart."""

    def noise(params: Any, features: jax.Array) -> LabelNoise:
        zero = jnp.zeros((), features.dtype)
        spread = 1 / jnp.tanh(jnp.asarray(params.epsilon, features.dtype) / 2)
        return LabelNoise(spread, zero, zero, searched(features, zero_sum=zero_sum))

    return noise

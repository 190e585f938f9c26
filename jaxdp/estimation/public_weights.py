"""Chooses weights of samples from public features, and predicts the error of the weighted estimate.

A label enters a sufficient statistic multiplied by its feature, so the largest feature norm determines the privacy
noise. With weights w_i = min(1, cut / |x_i|) the sensitivity is at most the cut, so less noise is needed. The estimate
stays consistent for any such weights, since they depend only on features.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from jaxdp.core import Scalar, scalar_leaf
from jaxdp.mechanisms import analytic_gaussian
from jaxdp.numerics.eigen import eigh
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.numerics.products import product
from jaxdp.validation import check_at_least, check_choice, check_count, check_epsilon

WEIGHTS = ("none", "cut")
NOISES = ("gaussian", "k_norm")
CANDIDATES = 64  # maximum number of groups of samples; a candidate cut is the largest length in a group


class WithCut(NamedTuple):
    """The output of an estimator's `privatize` if samples are weighted.

    Attributes:
        report: the noisy weighted statistic, in the form that `privatize` returns without weights.
        cut: [] float >= 0, maximum weighted norm of a sample's features: the user's value or the value with the least
            predicted error, but at most the largest norm. It depends on public values only.
    """

    report: Any
    cut: jax.Array


@in_64_bits
def feature_norms(features: jax.Array) -> jax.Array:
    """Returns the norms of the vectors on the last axis of [..., dim] floats, rounded up as they are sensitivities.

    A nonzero norm never becomes 0, since this would be a sensitivity of 0. Each vector is divided by a power of two, so
    that squares neither overflow nor underflow; this division does not round. Nonzero norms that would be subnormal
    become the smallest normal float.
    """
    wide = features.astype(jnp.float64)
    unit = power_below(jnp.max(jnp.abs(wide), axis=-1, keepdims=True))
    norms = jnp.linalg.norm(wide / unit, axis=-1) * unit[..., 0]
    # Norms in float64 may be rounded down, so they are increased. For float32 results these last bits do not matter.
    return cast_up(norms * (1 + features.shape[-1] * 2.0**-52), features.dtype)


def cast_up(norms: jax.Array, dtype: jnp.dtype) -> jax.Array:
    """Casts nonnegative float64 to `dtype`, never rounding down; results are zero or normal. Requires 64-bit mode."""
    limits = jnp.finfo(dtype)
    cast = norms.astype(dtype)
    cast = jnp.where(cast.astype(jnp.float64) < norms, cast * (1 + limits.eps), cast)
    return jnp.where(norms > 0, jnp.maximum(cast, limits.tiny), cast)


def power_below(values: jax.Array) -> jax.Array:
    """Returns the largest power of two that is at most the value, elementwise. The result is [...] float.

    Positive subnormal values give the smallest normal float. Values that are not positive and finite give 1/2.
    """
    positive = jnp.where((values > 0) & jnp.isfinite(values), values, 0.5)
    limits = jnp.finfo(positive.dtype)
    integer = {32: jnp.int32, 64: jnp.int64}[limits.bits]
    # Computed from the bits: JAX 0.12 lowers `jnp.frexp` without the 64-bit types with which it was traced.
    exponent = lax.bitcast_convert_type(jnp.maximum(positive, limits.tiny), integer) >> limits.nmant << limits.nmant
    return lax.bitcast_convert_type(exponent, positive.dtype)


def cut_leaf(cut: float) -> Scalar:
    """Checks an estimator's `cut` >= 0, and returns it as a `Params` leaf; the estimator determines what 0 means."""
    return scalar_leaf("cut", check_at_least("cut", cut, 0.0))


def cut_weights(lengths: jax.Array, cut: jax.Array) -> jax.Array:
    """Returns min(1, cut / length) ([num_samples] float) for lengths [num_samples] >= 0; 1 for a length of 0.

    Weights are > 0 if cut ([] float) is > 0.
    """
    longer = lengths > cut
    return jnp.where(longer, cut / jnp.where(longer, lengths, 1), 1)


def effective_cut(
    cut: Scalar, lengths: jax.Array, rows: jax.Array, noise_variance: jax.Array, basis: jax.Array | None
) -> jax.Array:
    """Returns the requested cut (0 requests the cut with the least predicted error), but at most the largest length.

    Args:
        cut: [] float >= 0.
        lengths: [num_samples] float, the norms of samples' features, which the cut bounds.
        rows: [num_samples, num_rows, dim] float; a sample's Fisher information at 0 is rows^T rows.
        noise_variance: [] float >= 0, variance of the privacy noise on each coordinate of the statistic, divided by
            cut^2.
        basis: [dim, rank] float, orthonormal columns that span the subspace in which theta is sought; None means the
            whole space.

    Returns:
        [] float.
    """
    requested = jnp.asarray(cut, lengths.dtype)
    unit = power_below(jnp.max(lengths))  # prevents underflow of squares; the chosen cut does not depend on the unit
    within = (rows if basis is None else product(rows, basis)) / unit
    candidates, errors = predicted_errors(lengths / unit, within, noise_variance)
    chosen = candidates[jnp.argmin(errors)] * unit
    return jnp.minimum(jnp.where(requested > 0, requested, chosen), jnp.max(lengths))


def predicted_errors(lengths: jax.Array, rows: jax.Array, noise_variance: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Predicts the mean squared error of the estimate for candidate cuts, assuming that the true parameter is zero.

    Let C_i be the Fisher informations at theta = 0. The weighted objective has the Hessian H = sum w_i C_i. The
    covariance of its gradient is M + V, with M = sum w_i^2 C_i from the labels and V = noise_variance * cut^2 I from
    the privacy noise. As the number of samples grows, the estimate has the covariance H^-1 (M + V) H^-1. The prediction
    is the trace of this matrix.

    Args:
        lengths: [num_samples] float >= 0.
        rows: [num_samples, num_rows, rank] float; C_i = rows_i^T rows_i. Directions that no row spans do not count in
            the error.
        noise_variance: [] float >= 0, variance of the privacy noise on each coordinate, divided by cut^2.

    Returns:
        Cuts, [at most 65] float, and the predicted mean squared error of each cut, of the same shape; infinite for a
        cut of 0. Cuts are in increasing order: the smallest length, and the lengths at up to 64 equally spaced
        quantiles, the largest length last.
    """
    num_samples, num_rows, dim = rows.shape
    size = -(-num_samples // CANDIDATES)  # samples in a group; sums of groups give the matrices of all candidates
    groups = -(-num_samples // size)
    order = jnp.argsort(lengths)
    ordered = lengths[order]
    padding = groups * size - num_samples
    ordered = jnp.concatenate([ordered, jnp.broadcast_to(ordered[-1:], (padding,))])
    rows = jnp.concatenate([rows[order], jnp.zeros((padding, num_rows, dim), rows.dtype)])
    grouped, inside = ordered.reshape(groups, size), rows.reshape(groups, size * num_rows, dim)

    def second_moments(weights):  # [groups, size] -> [groups, dim, dim]
        repeated = jnp.repeat(weights, num_rows, axis=1)[:, :, None]
        return product(jnp.swapaxes(inside * repeated, 1, 2), inside)

    shrink = jnp.where(grouped > 0, 1 / jnp.where(grouped > 0, grouped, 1), 0)
    unweighted, once, twice = (second_moments(weights) for weights in (jnp.ones_like(shrink), shrink, shrink**2))
    zero = jnp.zeros((1, dim, dim), rows.dtype)
    below = jnp.concatenate([zero, jnp.cumsum(unweighted, axis=0)])  # sums of groups up to each candidate

    def above(sums):  # sums of later groups, added from the end, so that nothing cancels
        return jnp.concatenate([jnp.cumsum(sums[::-1], axis=0)[::-1], zero])

    cuts = jnp.concatenate([grouped[:1, 0], grouped[:, -1]])
    factor = cuts[:, None, None]
    hessian, label_moments = below + factor * above(once), below + factor**2 * above(twice)
    # The spanned directions are computed from features scaled to norm 1. Otherwise rounding errors of one large feature
    # would hide the directions of all others.
    normalized = jnp.sum(twice, axis=0)
    eigenvalues, directions = eigh(normalized)
    spanned = (eigenvalues > dim * jnp.finfo(rows.dtype).eps * jnp.trace(normalized)).astype(rows.dtype)
    span = product(directions * spanned[None, :], directions.T)
    unspanned = jnp.trace(below[-1]) * (jnp.eye(dim, dtype=rows.dtype) - span)
    regular = hessian + unspanned[None]  # unspanned directions get no error
    covariance = label_moments + noise_variance * factor**2 * span[None]
    inverse = _inverses(regular)
    errors = jnp.sum(product(inverse, covariance) * inverse, axis=(1, 2))  # the trace, since inverses are symmetric
    # A cut of 0 would remove all labels. If some feature is not 0, a larger candidate is chosen instead.
    return cuts, jnp.where((cuts > 0) & (errors > 0) & jnp.isfinite(errors), errors, jnp.inf)


def noise_variance(noise_multiplier: jax.Array, epsilon: jax.Array, noise: str, rank: int) -> jax.Array:
    """Returns the variance of the privacy noise on each coordinate, divided by sensitivity^2. The result is [] float.

    Args:
        noise_multiplier: [] float, standard deviation of Gaussian noise divided by the sensitivity.
        epsilon: [] float > 0, budget of K-norm noise.
        noise: "gaussian" or "k_norm".
        rank: number of coordinates, d.
    """
    return noise_multiplier**2 if noise == "gaussian" else (rank + 1) / epsilon**2


def quieter_noise(*, epsilon: float, delta: float, dim: int) -> str:
    """Returns the name of the noise with the smaller predicted error, "gaussian" or "k_norm", from public values.

    The predicted error depends on the noise only through the variance per coordinate, divided by sensitivity^2. This is
    sigma^2 of the analytic Gaussian mechanism, or (d + 1) / epsilon^2 for K-norm noise. So the choice is the same for
    all features. K-norm noise needs no delta. Its tails are heavier, so confidence sets may be wider (by a fifth) even
    if estimates are more accurate. The function runs on the host.

    Args:
        epsilon: in (0, inf].
        delta: in (0, 1), for the Gaussian noise; or 0, which only K-norm noise allows.
        dim: d, number of coordinates with noise: the number of features, or one less under `zero_sum`.

    Returns:
        The name of the quieter noise; at epsilon = inf "gaussian", except if delta = 0.

    Raises:
        ValueError: if a value is out of range.

    Examples:
        >>> quieter_noise(epsilon=0.1, delta=1e-6, dim=10), quieter_noise(epsilon=0.01, delta=1e-6, dim=10)
        ('k_norm', 'gaussian')
    """
    epsilon = check_epsilon(epsilon)
    check_count("dim", dim)
    if delta == 0:
        return "k_norm"
    stddev = analytic_gaussian(epsilon, delta)
    return "k_norm" if np.isfinite(epsilon) and math.sqrt(dim + 1) / epsilon < stddev else "gaussian"


def check_weights(weights: str) -> bool:
    """Returns whether samples are weighted; raises a ValueError for a name that is not in `WEIGHTS`."""
    return check_choice("weights", weights, WEIGHTS) == "cut"


def _inverses(matrices: jax.Array) -> jax.Array:
    """Inverts positive definite matrices ([count, dim, dim]) by Gauss-Jordan steps, which need no pivoting here."""
    # LAPACK's calls for many matrices may deadlock; see `jaxdp.numerics.eigen.eigh`.
    dim = matrices.shape[-1]
    index = jnp.arange(dim)

    def step(step_index: jax.Array, current: jax.Array) -> jax.Array:
        is_pivot = (index == step_index).astype(matrices.dtype)
        row = jnp.sum(current * is_pivot[None, :, None], axis=1)
        column = jnp.sum(current * is_pivot[None, None, :], axis=2)
        pivot = jnp.sum(row * is_pivot[None, :], axis=1)
        row = (row + is_pivot[None, :] * (1 - pivot)[:, None]) / pivot[:, None]
        cleared = current * (1 - is_pivot)[None, None, :]  # the inverse is stored in place of the unit column
        eliminated = cleared - (column * (1 - is_pivot)[None, :])[:, :, None] * row[:, None, :]
        return jnp.where(is_pivot[None, :, None] > 0, row[:, None, :], eliminated)

    return jax.lax.fori_loop(0, dim, step, matrices)

"""Coordinates in which the second moment of public features is the identity, and the ridge with the least margin error.

Proof and derivation: docs/proofs/whitened_noise.md.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from numpy.typing import ArrayLike

from jaxdp.core import Scalar, default_float
from jaxdp.estimation.large import Moments, block_lengths, whiten_blocks
from jaxdp.mechanisms import analytic_gaussian
from jaxdp.numerics.eigen import eigh
from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.preferences.persons import count_labels
from jaxdp.validation import check_above, check_choice, check_delta, check_epsilon, check_finite, check_positive

GEOMETRIES = ("isotropic", "whitened")
_SIZES = {4: (1e-12, 1e16), 8: (1e-60, 1e60)}  # range of the largest entry, so that squares fit, by bytes of a float
_WIDEST = 1e30  # largest finite guess of the margins' standard deviation
_HALVINGS = np.arange(0, 60.5, 0.5)  # number of halvings of the largest ridge, for each ridge on the grid


class Whitening(NamedTuple):
    """Features in whitened coordinates, and the map back to the original coordinates.

    Attributes:
        features: [num_samples, dim] float. Their second moment is diagonal, with 1 in as many coordinates as the rank
            of the original second moment, and 0 in all others. The squares of the rows' norms are leverages times
            num_samples.
        back: [dim, dim] float. features @ back are the original features. If s is a weighted sum of the whitened rows,
            s @ back is the same weighted sum of the original rows.
    """

    features: jax.Array
    back: jax.Array


def check_geometry(geometry: str) -> bool:
    """Returns whether noise is whitened; raises a ValueError for a name not in `GEOMETRIES`."""
    return check_choice("geometry", geometry, GEOMETRIES) == "whitened"


@in_64_bits
def whiten(features: jax.Array, *, zero_sum: bool = False) -> Whitening:
    """Transforms features ([num_samples, dim] float) so that their second moment is the identity on its range.

    With `zero_sum` the features must be centred; the first whitened coordinate is then 0.
    """
    wide = features.astype(jnp.float64)
    largest = jnp.max(jnp.abs(wide), axis=0)
    wide = wide / jnp.where(largest > 0, largest, 1)[None]
    sizes = jnp.sqrt(jnp.sum(wide**2, axis=0, dtype=jnp.float64) / len(wide))
    sizes = jnp.where(sizes > 0, sizes, 1)
    wide = wide / sizes[None]  # columns of any scale then count equally
    values, vectors = eigh(lax.dot(wide.T, wide) / len(wide))  # under vmap of jit, `jnp.matmul` would use 32 bits
    # If columns are dependent, rounding of the features leaves a small eigenvalue instead of 0.
    rounding = max(8 * float(jnp.finfo(jnp.float64).eps), 16 * float(jnp.finfo(features.dtype).eps) ** 2)
    spanned = values > values[-1] * len(values) * rounding
    if zero_sum:
        spanned = spanned.at[0].set(False)
    roots = jnp.sqrt(jnp.where(spanned, values, 1))
    forward = jnp.where(spanned[None], vectors / roots[None], 0)
    back = jnp.where(spanned[None], vectors * roots[None], 0).T * (sizes * largest)[None]
    return Whitening(lax.dot(wide, forward).astype(features.dtype), back.astype(features.dtype))


@in_64_bits
def least_error_ridge(
    back: jax.Array, count: int, variance: jax.Array, margin_stddev: Scalar, weights: jax.Array | None = None
) -> jax.Array:
    """Returns the ridge penalty beta ([] float64) that minimizes the predicted margin error. All inputs are public.

    Args:
        back: [dim, dim] float, from `Whitening`.
        count: number of samples.
        variance: [] float >= 0, variance of the noise on each whitened coordinate of the statistic.
        margin_stddev: [] float > 0, B, the analyst's guess of the margins' standard deviation; infinity gives 0.
        weights: [count] float, weights of the samples; None means that all are 1.
    """
    wide = back.astype(jnp.float64)
    spectrum = jnp.maximum(eigh(lax.dot(wide.T, wide)).values, 0)
    return ridge_of_spectrum(spectrum, count, variance, margin_stddev, weights)


@in_64_bits
def ridge_of_spectrum(
    spectrum: jax.Array, count: int, variance: jax.Array, margin_stddev: Scalar, weights: jax.Array | None
) -> jax.Array:
    """Returns the ridge penalty beta ([] float64), from a grid, that minimizes the predicted margin error.

    `spectrum`, [dim], are the eigenvalues of the features' second moment. The other arguments are as for
    `least_error_ridge`.
    """
    guess = jnp.asarray(margin_stddev, jnp.float64)
    shares = jnp.ones(1, jnp.float64) if weights is None else weights.astype(jnp.float64)
    per_share = count / len(shares)
    moments = tuple(per_share * jnp.sum(power, dtype=jnp.float64) for power in (shares, shares**2))
    grid, errors = _ridge_errors(spectrum, moments, jnp.asarray(variance, jnp.float64), guess)
    best = jnp.max(jnp.where(errors <= jnp.min(errors), grid, 0))  # JAX lowers `argmin` without 64-bit types
    return jnp.where(jnp.isinf(guess), 0, best)


def predicted_margin_errors(
    features: ArrayLike,
    *,
    epsilon: float,
    delta: float,
    margin_stddev: float = 1.0,
    persons: ArrayLike | None = None,
) -> dict[str, float]:
    """Predicts the root mean squared error of estimated margins for each kind of noise, from public features only.

    Use this function to choose an estimator before labels are used. The prediction assumes that theta is spread evenly
    over all directions, so that margins have the standard deviation `margin_stddev`. If an error is above
    `margin_stddev`, the estimate is worthless. The function runs on the host.

    Args:
        features: [num_samples, dim] float, public.
        epsilon: in (0, inf].
        delta: in (0, 1), for the Gaussian noise.
        margin_stddev: B, a guess of the margins' standard deviation, in (0, 1e30].
        persons: [num_samples] public ids, for `privacy_unit="person"`; None means that the unit is one label.

    Returns:
        Root mean squared errors of margins: "randomized_response" (`debiased_rr`), "gaussian" and "k_norm"
        (`objective_perturbation` with geometry="whitened"), and "isotropic" (`objective_perturbation` with isotropic
        Gaussian noise). The last three are at their best ridges on a grid. All are first-order predictions for many
        samples, without weights. An error that overflows, at a tiny epsilon, is infinity.

    Raises:
        ValueError: if features are not a finite table with a largest absolute entry in [1e-12, 1e16], or in 64-bit mode
            in [1e-60, 1e60]; persons are not one id per sample; or a value is out of range.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(2000, 8))
        >>> errors = predicted_margin_errors(rows, epsilon=1.0, delta=1e-6)
        >>> print({name: f"{error:.2f}" for name, error in errors.items()})
        {'randomized_response': '0.32', 'gaussian': '0.20', 'k_norm': '0.17', 'isotropic': '0.20'}
    """
    epsilon = np.float64(check_epsilon(epsilon))
    check_delta(delta)
    _check_guess(margin_stddev)
    rows = _table(features)
    if persons is not None and np.shape(persons) != rows.shape[:1]:
        raise ValueError(f"persons must have one id per sample, {len(rows)}, got shape {np.shape(persons)}")
    white = whiten_blocks(rows, Moments.of(rows))
    index, budgets = None, np.asarray(epsilon, float)
    if persons is not None:
        _, index, counts = count_labels(persons)
        budgets = epsilon / counts[index]
    reach, longest = (float(block_lengths(table, index).max()) for table in (white.features, rows))
    spectrum, rank = white.spectrum, int(np.sum(white.largest > 0))
    count, curvature = len(rows), float(_curvature(margin_stddev))
    stddev = np.float64(analytic_gaussian(float(epsilon), delta))
    with np.errstate(over="ignore", under="ignore", divide="ignore"):
        label_variance = np.mean(0.25 / np.tanh(budgets / 2) ** 2) - 0.25 + curvature
        errors = {
            "randomized_response": rank * label_variance / (count * curvature**2),
            "gaussian": _least_error(spectrum, count, (stddev * reach) ** 2, margin_stddev),
            "k_norm": _least_error(spectrum, count, (rank + 1) * (reach / epsilon) ** 2, margin_stddev),
            "isotropic": _least_error(spectrum, count, (stddev * longest) ** 2, margin_stddev, whitened=False),
        }
    return {name: float(np.sqrt(error)) for name, error in errors.items()}


def predicted_ridge(
    features: ArrayLike, *, epsilon: float, delta: float, sensitivity: float | None = None, margin_stddev: float = 1.0
) -> float:
    """Returns the `regularization` with the least predicted margin error for `objective_perturbation` without weights.

    The ridge is for isotropic Gaussian noise. With geometry="whitened" and regularization 0 the estimator itself
    chooses a ridge, for whitened noise. Neither the estimator nor this function uses labels for the ridge, so the
    choice costs no privacy.

    Args:
        features: [num_samples, dim] float, public.
        epsilon: in (0, inf].
        delta: in (0, 1).
        sensitivity: sensitivity of the statistic, finite and > 0; None means the largest norm of a row, for one label,
            which must not be 0.
        margin_stddev: B, a guess of the margins' standard deviation, in (0, 1e30], or infinity, which gives 0.

    Raises:
        ValueError: if features are not a table as for `predicted_margin_errors`, a value is out of range, or the
            variance of the noise overflows.

    Examples:
        >>> rows = np.random.default_rng(0).normal(size=(2000, 8))
        >>> strong, weak = (predicted_ridge(rows, epsilon=epsilon, delta=1e-6) for epsilon in (0.1, 10.0))
        >>> strong > weak
        True
    """
    check_epsilon(epsilon)
    check_delta(delta)
    if not math.isinf(check_above("margin_stddev", margin_stddev, 0.0)):
        _check_guess(margin_stddev)
    rows = _table(features)
    longest = float(block_lengths(rows, None).max()) if sensitivity is None else sensitivity
    if not math.isfinite(check_above("sensitivity", longest, 0.0)):
        raise ValueError(f"sensitivity must be finite, got {longest}")
    if np.isinf(margin_stddev):
        return 0.0
    spectrum = np.linalg.eigvalsh(Moments.of(rows).second)
    with np.errstate(over="ignore", under="ignore"):
        variance = np.square(np.float64(analytic_gaussian(epsilon, delta)) * longest)
        if not np.isfinite(variance):
            raise ValueError(
                f"sensitivity must be small enough for a finite variance of noise at epsilon {epsilon:g}, got {longest}"
            )
        grid, errors = _ridge_errors(np.maximum(spectrum, 0), (len(rows),) * 2, variance, margin_stddev, whitened=False)
    return float(grid[np.argmin(errors)])


def _check_guess(margin_stddev: float) -> None:
    if check_positive("margin_stddev", margin_stddev) > _WIDEST:
        raise ValueError(f"margin_stddev must be <= {_WIDEST:g}, got {margin_stddev}")


def _table(features: ArrayLike) -> np.ndarray:
    rows = check_finite("features", features)
    if rows.ndim != 2 or 0 in rows.shape:
        raise ValueError(f"features must have shape [num_samples, dim] with sizes >= 1, got {rows.shape}")
    largest, (lower, upper) = max(float(rows.max()), -float(rows.min())), _SIZES[default_float().itemsize]
    if largest == 0:
        raise ValueError("features must not all be 0, got zeros only")
    if not lower <= largest <= upper:
        raise ValueError(f"features must have a largest absolute entry in [{lower:g}, {upper:g}], got {largest:g}")
    return rows


def _least_error(
    spectrum: np.ndarray, count: int, variance: float, margin_stddev: float, *, whitened: bool = True
) -> float:
    if math.isinf(variance):
        return math.inf
    _, errors = _ridge_errors(spectrum, (count, count), variance, margin_stddev, whitened=whitened)
    return float(np.min(errors))


def _ridge_errors(spectrum, moments, variance, margin_stddev, *, whitened: bool = True):
    """Computes a grid of ridges, and the predicted mean squared error of margins for each ridge.

    `spectrum` [dim] contains the eigenvalues of the features' second moment, and `moments` contains the sums over
    samples of weights and of squared weights. `variance` is the variance of the noise on each coordinate of the
    statistic or, if `whitened`, on each whitened coordinate.
    """
    sums, squares = moments
    total = spectrum.sum(dtype=spectrum.dtype)
    ridges = sums * total * 0.5**_HALVINGS
    curvature = _curvature(margin_stddev)
    bias = ridges[:, None] ** 2 * margin_stddev**2 / total
    spectrum = spectrum[None]
    noise = squares * curvature * spectrum + variance * (spectrum if whitened else 1.0)
    errors = spectrum * (bias + noise) / (sums * curvature * spectrum + ridges[:, None]) ** 2
    return ridges, errors.sum(axis=1, dtype=errors.dtype)


def _curvature(margin_stddev):
    """Returns the mean of sigmoid' over normal margins of mean 0 and this standard deviation.

    It approximates the sigmoid by a normal distribution function.
    """
    return 0.25 / (1 + np.pi / 8 * margin_stddev**2) ** 0.5

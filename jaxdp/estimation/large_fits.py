"""Privatizes labels and fits theta to features that are too large to copy: `Estimator.large` of three estimators."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Estimator, default_float
from jaxdp.estimation.doubts import (
    NEARLY_DEPENDENT,
    is_unbounded,
    warn_long_row,
    warn_saturated,
    warn_unconverged,
)
from jaxdp.estimation.large import (
    Moments,
    block_cut,
    block_lengths,
    block_statistic,
    check_memory,
    whiten_blocks,
)
from jaxdp.estimation.large_newton import fit_blocks, is_saturated
from jaxdp.estimation.noisy_statistic import Params, Release, add_noise, sensitivity_unit
from jaxdp.estimation.solver import Estimate
from jaxdp.estimation.whitening import ridge_of_spectrum


def fit_large_labels(
    params: Any, features: np.ndarray, targets: jax.Array, cut: float = 0.0, *, offset: np.ndarray | None = None
) -> Estimate:
    """Fits theta to targets (exact labels or unbiased reports) by the logistic loss, in blocks of rows.

    Args:
        params: parameters of an estimator; `radius` and `tolerance` are used.
        features: [num_samples, dim] float, with rows x_i.
        targets: [num_samples] float.
        cut: the weight of row i is min(1, cut / |x_i|), divided by the mean of these numbers. If cut is 0 or infinity,
            all weights are 1.
        offset: [num_samples] float64, public parts of the margins offset_i + x_i^T theta; None means 0.

    Raises:
        MemoryError: if the fit needs more than the free memory.
    """
    check_memory(features, whitened=False, weighted=False)
    moments, wide, weights = Moments.of(features), np.asarray(targets, np.float64), None
    if 0 < cut < np.inf:
        weights = _weights(block_lengths(features, None), cut)
        weights /= weights.mean()
        wide = wide * weights
    statistic, _ = block_statistic(features, wide, moments.largest * np.abs(wide).max())
    return fit_blocks(
        features,
        moments,
        statistic,
        regularization=0.0,
        weights=weights,
        radius=float(params.radius),
        tolerance=float(params.tolerance),
        offset=offset,
    )


def fit_large_statistic(
    release: Release,
    key: jax.Array | None,
    params: Params,
    features: np.ndarray,
    labels: jax.Array,
    report_secretly: Callable[[np.ndarray, Any], tuple[np.ndarray, float]] | None = None,
    *,
    offset: np.ndarray | None = None,
) -> Estimate:
    """Releases the labels' statistic with Gaussian noise, and fits theta to the noisy statistic.

    The noise and the minimised objective are as in `objective_perturbation`.

    Args:
        release: the options of the release.
        key: key of the noise.
        params: parameters of the estimator.
        features: [num_samples, dim] float.
        labels: [num_samples] in {0, 1/2, 1}.
        report_secretly: (whitened features, weights) -> the noisy statistic and its sensitivity. It may overwrite the
            whitened features. Only for weighted and whitened releases. If it is given, the key and the labels are
            not used.
        offset: [num_samples] float64, public parts of the margins; None means 0.

    Raises:
        MemoryError: if the fit needs more than the free memory.
        ValueError: if there are more features than `release.max_dim`.
    """
    release.check_dim(features.shape[1])
    check_memory(features, whitened=release.whitened, weighted=release.is_weighted)
    moments = Moments.of(features)
    white = whiten_blocks(features, moments) if release.whitened else None
    rows, largest = (features, moments.largest) if white is None else (white.features, white.largest)
    lengths = block_lengths(rows, params.persons)
    reach, weights, variance = lengths.max(), None, float(params.noise_multiplier) ** 2
    with jax.enable_x64(True):
        unit = float(sensitivity_unit(params, jnp.asarray(lengths), release))
    if release.is_weighted:
        reach = unit = block_cut(rows, lengths, float(params.cut), variance, moments if white is None else None)
        weights = _weights(lengths, reach)
    if report_secretly is None:
        report = _noisy_statistic(release, key, params, rows, labels, largest, weights, (reach, unit))
    else:
        report, unit = report_secretly(rows, weights)
    ridge = float(params.regularization)
    if white is not None:
        report, spectrum = report @ white.back, white.spectrum
        del white, rows
        if ridge == 0:
            with jax.enable_x64(True):
                scale = jnp.asarray(variance * unit**2)
                shares = None if weights is None else jnp.asarray(weights)
                guess = jnp.asarray(params.margin_stddev)
                ridge = float(ridge_of_spectrum(jnp.asarray(spectrum), len(lengths), scale, guess, shares))
    mean = 1.0 if weights is None else weights.mean()
    return fit_blocks(
        features,
        moments,
        report / mean,
        regularization=ridge / mean,
        weights=None if weights is None else weights / mean,
        radius=float(params.radius),
        tolerance=float(params.tolerance),
        offset=offset,
    )


def _noisy_statistic(
    release, key, params: Params, rows, labels, largest, weights, scales: tuple[float, float]
) -> np.ndarray:
    """Returns the noisy statistic, [dim] float64. The fit uses labels only through this statistic.

    `largest`, [dim], is the largest absolute entry of each column of `rows`. `scales` are the statistic's sensitivity,
    and the standard deviation of the noise for a noise multiplier of 1; both ignore rounding errors.
    """
    factors = np.clip(np.asarray(labels, np.float64), 0, 1) * (1 if weights is None else weights)
    changed = 1 if params.persons is None else int(np.bincount(np.asarray(params.persons)).max())
    statistic, error = block_statistic(rows, factors, largest, changed)
    with jax.enable_x64(True):
        reach, unit = (jnp.asarray(scale, jnp.float64) for scale in scales)
        noisy = add_noise(key, params, jnp.asarray(statistic), jnp.asarray(error), reach, unit, release)
        noisy = jnp.where((reach == 0) & ~jnp.any(largest > 0), 0, noisy)
    return np.asarray(noisy.astype(default_float()), np.float64)


def _weights(lengths: np.ndarray, cut: float) -> np.ndarray:
    longer = lengths > cut
    return np.where(longer, cut / np.where(longer, lengths, 1), 1)


def warn_large_doubts(
    estimator: Estimator,
    estimate: Estimate,
    features: np.ndarray,
    values: Mapping[str, Any],
    offset: np.ndarray | float = 0.0,
) -> None:
    """Warns if a solver stopped early, predicted probabilities are near 0 or 1, or a norm of features is too large.

    The last two warnings are given only without a ridge. The warning about predicted probabilities is given only if the
    solver converged and the radius is too large to limit the search (see `is_unbounded`). Norms are checked only in
    32-bit mode; a norm is too large if it far exceeds the median norm. Features may be mapped from a file. `values` are
    the estimator's values, with defaults. `offset`, [num_samples] or a number, is the public part of the margins.
    """
    has_ridge = bool(values.get("regularization")) or np.isfinite(values.get("margin_stddev", np.inf))
    if not estimate.converged:
        warn_unconverged(estimator, estimate, features, values)
    elif not has_ridge and is_unbounded(features, values):
        theta = np.asarray(estimate.theta)
        if is_saturated(features, theta, offset):
            warn_saturated(theta)
    if not has_ridge and default_float() == np.float32:
        lengths = block_lengths(features, None)
        lengths = lengths[lengths > 0]
        # A column's norm is then nearly its entry in the row of large norm.
        if len(lengths) and np.sqrt(len(lengths)) * np.median(lengths) < NEARLY_DEPENDENT * lengths.max():
            warn_long_row(lengths)

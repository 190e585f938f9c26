"""Warns about estimates that should not be trusted. All checks depend only on the release and on public features."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from jaxdp.core import Estimator, default_float
from jaxdp.estimation.label_params import TOLERANCE
from jaxdp.estimation.newton import FARTHEST
from jaxdp.validation import WITH_X64, warn_caller

# The smallest over the largest singular value, with columns of norm 1. Below this ratio, fits in float32 are wrong.
NEARLY_DEPENDENT = 2e-3
OVERSHOOT = 8.0  # largest learning rate times squared norm: 2 / (1/4), since the logistic loss has curvature <= 1/4
# Learning rate times curvature, summed over steps. At 0.1, theta moves about a tenth of the way to the minimum.
STANDSTILL = 0.1
SATURATED = 0.04  # Fisher information at theta over its value at 0: below this ratio, answers are nearly certain
RANK = 1e-9  # eigenvalues below this fraction of the largest one are rounding errors
FEWEST_NATS = 4.0  # Fisher information about the log of one component of theta; at 4, its estimate has variance 1 / 4


def warn_unconverged(estimator: Estimator, estimate: Any, features: np.ndarray, values: Mapping[str, Any]) -> None:
    """Warns that a solver stopped early, with advice that depends on the estimator's `values`, such as the radius.

    Reads `features` only if they are public.
    """
    radius, advice = values.get("radius"), "Rescale the columns of features to similar magnitudes, of about 1"
    size = _size(features) if estimator.features_public else 0.0
    if radius is not None and np.isinf(radius):
        advice = "Give a radius (without one, the loss of noisy labels may have no minimum), or r" + advice[1:]
    elif radius is not None and radius * size > FARTHEST:
        advice = (
            f"A radius of {radius:g} does not bound the search for theta if features have magnitude {size:.1g}: "
            "multiply the features by a constant, so that their magnitude is about 1, and choose a radius for such "
            "features"
        )
    tolerance = values.get("tolerance", TOLERANCE)
    if tolerance < TOLERANCE >= estimate.certificate and default_float() == np.float32:
        advice = (
            f"The tolerance, {tolerance:g}, may be below the rounding errors of 32-bit floats: use the default, "
            f"{TOLERANCE:g}, or 64 bits{WITH_X64}"
        )
    warn_caller(
        f"the estimate did not converge in {int(estimate.steps)} steps, its certificate is "
        f"{float(estimate.certificate):.2g}: do not rely on theta. {advice}",
        RuntimeWarning,
    )


def warn_one_pass(features: np.ndarray, learning_rate: float, *, is_weighted: bool) -> None:
    """Warns if a constant step is far too large or small for features [num_samples, dim] or [num_samples, K, dim].

    The step is compared with the median squared norm if samples are weighted, and otherwise with the mean.
    """
    wide = features.astype(np.float64)
    wide = wide - wide.mean(axis=1, keepdims=True) if wide.ndim == 3 else wide[:, None]
    squares = np.sum(wide**2, axis=-1).max(axis=1)
    typical = np.median(squares) if is_weighted else np.mean(squares)
    if learning_rate * typical > OVERSHOOT:
        fault, effect, change = "large", "steps overshoot, and the last ones determine theta", "lower"
    elif len(squares) * learning_rate * typical / 4 < STANDSTILL and typical > 0:
        fault, effect, change = "small", "theta hardly leaves 0, where it starts", "raise"
    else:
        return
    warn_caller(
        f"do not rely on theta: learning_rate {learning_rate:g} is too {fault} for features whose squared norm is "
        f"{typical:.2g}, so that {effect}. Multiply the features by a constant, so that their norm is about 1, or "
        f"{change} learning_rate",
        RuntimeWarning,
    )


def warn_no_minimum(features: np.ndarray, theta: np.ndarray, *, repeats: int = 1) -> None:
    """Warns if the objective of an unbounded search seems to have no minimum; each row has `repeats` labels."""
    wide = features.astype(np.float64)
    wide = wide if wide.ndim == 3 else np.stack([wide, np.zeros_like(wide)], axis=1)
    sizes = np.abs(wide).max(axis=(0, 1))
    wide, scaled_theta = wide / np.where(sizes > 0, sizes, 1), theta.astype(np.float64) * sizes

    def information(at: np.ndarray) -> np.ndarray:
        margins = wide @ at
        shares = np.exp(margins - margins.max(axis=1, keepdims=True))
        shares /= shares.sum(axis=1, keepdims=True)
        centred = (wide - np.einsum("nk,nkd->nd", shares, wide)[:, None]) * np.sqrt(shares)[..., None]
        flat = centred.reshape(-1, centred.shape[-1])
        return repeats * flat.T @ flat

    values, vectors = np.linalg.eigh(information(np.zeros_like(scaled_theta)))
    spanned = values > values.max() * RANK
    if not spanned.any():
        return
    roots, vectors = np.sqrt(values[spanned]), vectors[:, spanned]
    ratios, directions = np.linalg.eigh((vectors / roots).T @ information(scaled_theta) @ (vectors / roots))
    coordinate = directions[:, 0] @ (roots * (scaled_theta @ vectors))
    if ratios[0] < SATURATED and ratios[0] * coordinate**2 < FEWEST_NATS:
        # In some direction nearly all answers are certain at theta: the Fisher information is far below its value at 0,
        # and too small to determine the size of theta.
        warn_saturated(theta)


def warn_saturated(theta: np.ndarray) -> None:
    """Warns that the size of theta is arbitrary, because it makes answers nearly certain."""
    warn_caller(
        f"do not rely on the magnitude of theta (its norm is {np.linalg.norm(theta):.2g}): it makes some answers "
        "nearly certain, and the objective may have no minimum, for example because labels can be separated. Give a "
        "radius: a few units if features have a magnitude of about 1",
        RuntimeWarning,
    )


def warn_rounded_features(features: np.ndarray) -> None:
    """Warns if features do not determine theta in float32: nearly dependent columns, or few rows of far larger norm."""
    wide = features.astype(np.float64)
    if wide.ndim == 3:  # a vector added to the features of all actions does not change choices
        wide = wide[:, 1:] - wide[:, :1]
    wide = wide.reshape(-1, wide.shape[-1])
    sizes = np.abs(wide).max(axis=0)
    wide = wide[:, sizes > 0] / sizes[sizes > 0]
    lengths = np.linalg.norm(wide, axis=1)
    rows = wide[lengths > 0] / lengths[lengths > 0, None]
    eps = np.finfo(features.dtype if np.issubdtype(features.dtype, np.floating) else np.float64).eps
    direction_values = _singular_values(rows)  # the norms of rows do not change the span
    rank = int(np.sum(direction_values > 8 * np.sqrt(len(sizes)) * eps))
    least = min(_singular_values(wide)[:rank], default=1.0)
    if least >= NEARLY_DEPENDENT:
        return
    if min(direction_values[:rank]) >= NEARLY_DEPENDENT:
        warn_long_row(lengths[lengths > 0])
        return
    warn_caller(
        f"columns of features are nearly dependent (with columns of norm 1, the smallest singular value is "
        f"{least:.1g} times the largest): 32-bit floats do not determine theta along the difference of these "
        f"columns, even if `converged` is True. Drop a column, or use 64 bits{WITH_X64}",
        RuntimeWarning,
    )


def warn_long_row(lengths: np.ndarray) -> None:
    """Warns that the norm of a row of features is much larger than the median norm; `lengths` are the norms, > 0."""
    warn_caller(
        f"the largest row of features has {lengths.max() / np.median(lengths):.1g} times the median norm: "
        f"32-bit floats lose the information in rows of small norm, even if `converged` is True. Rescale rows to "
        f"similar norms, or use 64 bits{WITH_X64}",
        RuntimeWarning,
    )


def _size(features: np.ndarray) -> float:
    blocks = np.array_split(features, 1 + features.size // 2**22)  # mapped features may not fit in memory
    return float(np.sqrt(sum(float(np.sum(block.astype(np.float64) ** 2)) for block in blocks) / features.size))


def is_unbounded(features: np.ndarray, values: Mapping[str, Any]) -> bool:
    """Returns whether values["radius"] is infinite or too large to bound a search; False if there is no such value."""
    return values.get("radius", 0.0) * max(_size(features), np.finfo(float).tiny) > FARTHEST


def _singular_values(columns: np.ndarray) -> np.ndarray:
    """Returns the singular values of columns of norm 1, as fractions of the largest one, in decreasing order."""
    norms = np.linalg.norm(columns, axis=0)
    triangle = np.linalg.qr(columns / np.where(norms > 0, norms, 1), mode="r")
    singular = np.linalg.svd(triangle, compute_uv=False)
    return singular / max(singular.max(initial=0), np.finfo(float).tiny)


def warn_doubts(
    estimator: Estimator, estimate: Any, features: np.ndarray, values: Mapping[str, Any], *, repeats: int, ridge: bool
) -> None:
    """Warns if a solver stopped early, an unconstrained objective has no minimum, or features are unsuitable.

    Features are unsuitable if they do not determine theta in float32, or if a constant step size is far too large or
    too small for them.

    Args:
        estimator: the estimator that returned the estimate.
        estimate: an `Estimate`, or a tuple with its fields.
        features: the features that the user passed, as a NumPy array.
        values: the estimator's values, with defaults.
        repeats: number of labels of each row of features; more than one only for ballots.
        ridge: whether the objective has a penalty. If so, only convergence and a constant step size are checked.
    """
    reads_features = estimator.features_public and features.ndim in (2, 3)
    if np.any(np.isposinf(getattr(estimate, "certificate", np.inf))):  # the algorithm has no solver and no certificate
        if reads_features and "learning_rate" in values:
            warn_one_pass(features, values["learning_rate"], is_weighted="cut" in values)
        return
    if not np.all(estimate.converged):
        warn_unconverged(estimator, estimate, features, values)
    elif reads_features and not ridge and is_unbounded(features, values):
        warn_no_minimum(features, np.asarray(estimate.theta), repeats=repeats)
    if reads_features and not ridge and default_float() == np.float32:
        warn_rounded_features(features)

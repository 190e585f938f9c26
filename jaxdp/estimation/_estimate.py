"""Runs an estimator once on one data set, after checking the data and values, for use in notebooks."""

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from numpy.typing import ArrayLike
from scipy.special import ndtri

from jaxdp.checks import check_leaves, check_made
from jaxdp.core import CheckDataFn, Estimator, default_float
from jaxdp.estimation.doubts import warn_doubts
from jaxdp.estimation.large import BLOCK_SIZE, is_large
from jaxdp.estimation.large_fits import warn_large_doubts
from jaxdp.estimation.persons import takes_persons
from jaxdp.estimation.sandwich import Covariance
from jaxdp.estimation.solver import Estimate
from jaxdp.preferences.persons import count_labels
from jaxdp.validation import (
    check_above,
    check_choice,
    check_finite,
    check_key,
    check_probability,
    refuse_masked,
    refuse_private,
    warn_caller,
    warn_large_delta,
)

ROUNDING = 1e-6  # relative error of norms of features in float32
_INT32 = np.iinfo(np.int32).min, np.iinfo(np.int32).max


def estimate(
    estimator: Estimator,
    features: ArrayLike,
    labels: ArrayLike,
    *,
    key: jax.Array,
    persons: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    intervals: Any = None,  # Any: type checkers then accept callers who unpack a dict of floats
    confidence: float = 0.95,
    **values: Any,
) -> Estimate:
    """Privatizes the labels and fits the estimate, after checking data and values on the host.

    Errors never show a label or say which label is invalid: they only count invalid labels. They may show public
    features. If an estimator keeps features private too, this function checks only shapes and dtypes, and the estimator
    clips or replaces invalid values.

    Large features have more than 512 columns or more than 2^24 entries. On a CPU, `mle`, `debiased_rr` and
    `objective_perturbation` with Gaussian noise read large features in blocks of rows, so NumPy may map them into
    memory from a file, such as a float16 .npy file. If there is an `offset`, they read features of any size in blocks.
    In blocks, Newton's method finds its steps by conjugate gradients, without the Hessian, and ignores `max_steps`.
    `predict_fit_cost` predicts time and memory. Features are copied if there are intervals, a link that is not
    logistic, zero_sum or an optimizer.

    Do not use features phi(chosen) - phi(rejected) with labels that are all 1: they are not private at any epsilon,
    because the features then contain the preference and the label is constant. Orient every pair first, by a public
    rule (such as the order of display) or by a secret fair coin. The label then records whether the first action was
    chosen.

    Args:
        estimator: the estimator to run, for example `debiased_rr()`.
        features: [num_samples, dim] float, differential features x = phi(s, a1) - phi(s, a0); for K-wise estimators,
            [num_samples, K, dim] float, the features of K actions; for ballots, the features of `Ballots.design`.
            Public, unless the claim covers them.
        labels: [num_samples] in {0, 1}, where 1 means that a1 was preferred; or floats in {0, 1/2, 1}, where 1/2 is a
            tie. The order of the two actions must not depend on the preference. For K-wise estimators, [num_samples]
            indices of the preferred actions or, for `plackett_luce_mle`, also [num_samples, K] rankings. For ballots,
            the labels of `Ballots.design`. Private.
        key: JAX key for privatizing and fitting.
        persons: [num_samples] public ids of the persons who gave the labels, for estimators made with
            `privacy_unit="person"`. `claims_for_persons` returns the claims for one label and for one person of any
            estimator.
        offset: [num_samples] finite floats, public: margins of another model, such as a public reward model. They must
            not depend on the labels. The margin of a sample is then offset + x^T theta, so that theta corrects the
            other model. Only for estimators that can read features in blocks of rows, and without intervals.
        intervals: "sandwich" adds standard errors and normal confidence intervals, computed from the covariance H^-1 M
            H^-1 / n, with the mean curvature H and the mean squared slope M of the losses. None adds nothing. Intervals
            account for the privacy noise, and are post-processing. Intervals of `debiased_rr`, `mle` and `mle_rr` are
            robust: if the link is wrong, they still hold for the parameter to which the estimator then converges.
            Intervals of `objective_perturbation` rely on the link, because its labels are not released, and do not
            allow for the bias of its regularization. Labels must be independent: if a person's labels depend on one
            another, intervals are too short.
        confidence: coverage probability of each parameter's interval, in (0, 1).
        **values: the values that the estimator's `params` take (epsilon, delta, radius, feature_norm, ...). Every
            estimator accepts feature_norm (L): if features are public, every differential feature must then have norm
            at most 2 L, and an action's features norm at most L.

    Returns:
        The estimate. Its claim is the estimator's `guarantee` at these values, and at `persons` if they are given.

    Warns:
        UserWarning: if delta is above 1 / num_samples: such a claim allows whole labels to be published.
        RuntimeWarning: if the solver did not converge; if it converged without a radius, or with a very large one, but
            the objective seems to have no minimum; if a constant learning rate is far too large or too small for the
            features. In 32-bit mode, also if theta is inaccurate because columns of public features are nearly
            dependent, or because the norms of rows differ much. The warnings depend only on the output of `privatize`
            and on public features, so they are post-processing.

        RuntimeWarning: with intervals: if the norm of the estimate equals the radius, because intervals do not take
            this bound into account; if features do not determine the estimate (intervals are then NaN); or if the
            curvature of `mle_rr` is not positive definite (intervals then come from Fisher information, and rely on the
            link). With persons, if one of them gave several labels.

    Raises:
        TypeError: if a value that the estimator needs is missing, or the estimator does not take a value.
        ValueError: if the function is called inside a JAX transformation; if estimator is a factory that was not
            called, or key is not a typed key; if shapes are wrong, or entries are masked; if features are not finite,
            have norms that are too large for feature_norm, or are so large or small that squares leave the dtype's
            range; if the estimator does not accept a label; if a value is out of range; or if intervals, persons or an
            offset are passed to an estimator that does not support them.
        MemoryError: if the copies of a fit in blocks need more than the free memory.
        RuntimeError: if the solver did not converge and the estimator therefore releases nothing.

    Examples:
        >>> import jaxdp
        >>> data = jaxdp.preferences.gaussian_comparisons(jax.random.key(0), num_samples=500, dim=3)
        >>> result = estimate(jaxdp.estimation.mle(), data.features, data.labels, key=jax.random.key(1), radius=5.0)
        >>> result.theta.shape, bool(result.converged)
        ((3,), True)
    """
    check_made("estimator", estimator, Estimator)
    if any(isinstance(array, Tracer) for array in (jnp.zeros(()), key, features, labels)):
        raise ValueError(
            "estimate must be called outside of jax.jit, jax.vmap and similar transformations, since it checks data on "
            "the host, got traced arrays; inside, call estimator.privatize and estimator.fit"
        )
    if intervals is not None:
        check_choice("intervals", intervals, ("sandwich",))
        check_probability("confidence", confidence)
        if estimator.covariance is None:
            raise ValueError(
                f"intervals must be None for {estimator.made_by}, for which no covariance is known, got {intervals!r}"
            )
    check_key(key)
    feature_norm = values.get("feature_norm", np.inf)
    signature = inspect.signature(estimator.params)
    if persons is not None:
        if not takes_persons(estimator):
            raise ValueError(
                f"persons must be left out for {estimator.made_by}, which protects one label: if its factory takes "
                "privacy_unit='person', pass that to the factory; otherwise use claims_for_persons"
            )
        if np.shape(persons) != np.shape(labels)[:1]:
            raise ValueError(f"persons must have one id per label, {np.size(labels)}, got shape {np.shape(persons)}")
        values["persons"] = persons
    if "feature_norm" not in signature.parameters:
        values = {name: value for name, value in values.items() if name != "feature_norm"}  # only checked, see below
    try:
        signature.bind(**values)
    except TypeError as error:
        raise TypeError(
            f"values must be those that the estimator takes ({', '.join(signature.parameters)}): {error}"
        ) from None
    params = check_leaves("params of the estimator", estimator.params(**values))
    features, labels = _to_array("features", features), _to_array("labels", labels)
    if labels.ndim == 0:
        raise ValueError("labels must be an array with one entry per record, got a single number")
    raw_features = features
    check = estimator.check or check_data
    check_above("feature_norm", feature_norm, 0.0)
    if offset is not None and (estimator.large is None or intervals is not None):
        reason = "with intervals" if estimator.large is not None else f"for {estimator.made_by}"
        raise ValueError(
            f"offset must be left out {reason}: only mle, debiased_rr and objective_perturbation with Gaussian noise "
            "take it, with the logistic link, and without zero_sum and intervals"
        )
    public_margins = check_offset(offset, len(labels))
    in_blocks = offset is not None or (
        estimator.large is not None
        and intervals is None
        and is_large(features)
        and jax.default_backend() == "cpu"  # accelerators have the memory for copies
    )
    if in_blocks and features.ndim == 2 and features.size:
        check_in_blocks(check, features, labels, feature_norm)
    else:
        check(features, labels, feature_norm=feature_norm)
    if values.get("delta") and (claim := estimator.guarantee(**values)).is_private:
        warn_large_delta(claim.delta, len(labels))
    if labels.ndim == 1 and features.ndim == 2 and np.issubdtype(labels.dtype, np.floating):
        labels = jnp.asarray(np.clip(np.nan_to_num(labels), 0, 1), default_float())  # 1/2 is a tie
    else:
        labels = jnp.asarray(np.clip(np.nan_to_num(labels), *_INT32).astype(np.int32))  # large labels do not overflow
    key_privatize, key_fit = jax.random.split(key)
    bound = signature.bind(**values)
    bound.apply_defaults()
    if estimator.large is not None and in_blocks:
        fitted = estimator.large(key_privatize, params, features, labels, offset=public_margins)
        warn_large_doubts(
            estimator, fitted, features, bound.arguments, 0.0 if public_margins is None else public_margins
        )
        return fitted
    with np.errstate(over="ignore"):
        features = jnp.asarray(features, default_float())
    report = estimator.privatize(key_privatize, params, features, labels)
    with jax.default_matmul_precision("highest"):  # otherwise GPUs round the factors of matrix products
        result = jax.jit(estimator.fit)(key_fit, params, features, report)
    if estimator.check_estimate is not None:
        estimator.check_estimate(result)
    has_ridge = estimator.noise is not None and estimator.noise(params, features).regularization > 0
    if (spread := getattr(params, "margin_stddev", None)) is not None:
        has_ridge = np.isfinite(spread) or params.regularization > 0
    repeats = len(labels) if (raw_features.ndim, labels.ndim) == (2, 2) else 1
    warn_doubts(estimator, result, raw_features, bound.arguments, repeats=repeats, ridge=bool(has_ridge))
    if estimator.covariance is None or intervals is None:
        return result
    covariance = jax.jit(estimator.covariance)(params, features, report, result.theta)
    _warn_intervals(result.theta, covariance, bound.arguments.get("radius", np.inf), persons)
    stderr = jnp.sqrt(jnp.diag(covariance.matrix))
    reach = ndtri((1 + confidence) / 2) * stderr
    return result._replace(stderr=stderr, interval=jnp.stack([result.theta - reach, result.theta + reach], axis=1))


def check_offset(offset: ArrayLike | None, num_samples: int) -> np.ndarray | None:
    """Returns the offset, if any, as [num_samples] float64; raises a ValueError if its shape or values are invalid."""
    if offset is None:
        return None
    margins = check_finite("offset", offset).astype(np.float64)
    if margins.shape != (num_samples,):
        raise ValueError(f"offset must have one margin per label, {num_samples}, got shape {margins.shape}")
    return margins


def check_in_blocks(check: CheckDataFn, features: np.ndarray, labels: np.ndarray, feature_norm: float) -> None:
    """Calls `check` on blocks of rows, and if it rejects a block, on all rows, so that the error counts all faults."""
    step = max(1, BLOCK_SIZE // features.shape[1])
    try:
        for start in range(0, max(len(features), len(labels)), step):
            check(features[start : start + step], labels[start : start + step], feature_norm=feature_norm)
    except ValueError:
        check(features, labels, feature_norm=feature_norm)


def _warn_intervals(theta: jax.Array, covariance: Covariance, radius: float, persons: ArrayLike | None) -> None:
    """Warns if intervals are NaN or ignore persons or the radius, or are valid only for the right link."""
    if persons is not None and (num_labels := int(count_labels(persons)[2].max())) > 1:
        warn_caller(
            f"intervals treat all labels as independent, but a person gave up to {num_labels}: if a person's labels "
            "depend on one another, the intervals are too short",
            RuntimeWarning,
        )
    if np.isnan(covariance.matrix).any():
        warn_caller("intervals are NaN: the features do not determine the estimate", RuntimeWarning)
    elif np.linalg.norm(theta) >= radius * (1 - ROUNDING):
        warn_caller(
            f"intervals ignore the radius, but the estimate lies at it, radius={radius:g}: choose a larger radius or "
            "do not rely on the intervals",
            RuntimeWarning,
        )
    if covariance.from_information:
        warn_caller(
            "intervals come from Fisher information, because the curvature at the estimate is not positive definite: "
            "they are valid only if the link is right",
            RuntimeWarning,
        )


def _to_array(name: str, values: ArrayLike) -> np.ndarray:
    """Converts values to an array. An integer too large for any dtype becomes infinite: an error would reveal it."""
    refuse_masked(name, values)
    array = np.asarray(values)
    if array.dtype != object:
        return array

    def number(value: Any) -> Any:
        if not isinstance(value, int):
            return value
        try:
            return float(value)
        except OverflowError:
            return np.inf if value > 0 else -np.inf

    converted = np.asarray([number(value) for value in array.ravel()])
    return converted.reshape(array.shape) if converted.size == array.size else array


def check_data(features: ArrayLike, labels: ArrayLike, *, feature_norm: float = np.inf) -> None:
    """Checks differential features and their labels on the host.

    Args:
        features: [num_samples, dim], differential features.
        labels: [num_samples].
        feature_norm: L; a differential feature's norm is at most 2 L.

    Raises:
        ValueError: if shapes are wrong; if a feature is NaN or infinite, a norm is too large, or the largest entry of
            the features is too large or too small for squares; or if a label is not 0, 1/2 or 1.
    """
    refuse_masked("labels", labels)
    values, choices = _check_features("features", features, "[num_samples, dim]"), np.asarray(labels)
    if choices.shape != values.shape[:1]:
        raise ValueError(f"labels must have shape [num_samples] = {values.shape[:1]}, got {choices.shape}")
    _check_no_text(choices)
    refuse_private("labels", "in {0, 1}, or 1/2 for a tie", ~np.isin(choices, (0, 0.5, 1)))
    norms = np.linalg.norm(values.astype(np.float64), axis=1)
    worst = int(np.argmax(norms))
    if norms[worst] > 2 * feature_norm * (1 + ROUNDING):
        raise ValueError(
            f"feature_norm must be at least half the norm of every differential feature, got {feature_norm}, but "
            f"feature {worst} has norm {norms[worst]:g}"
        )


def check_choices(
    features: ArrayLike, labels: ArrayLike, *, feature_norm: float = np.inf, rankings: bool = False
) -> None:
    """Checks features of K actions and labels of a K-wise data set on the host.

    Args:
        features: [num_samples, K, dim], the features of all K actions.
        labels: [num_samples], the preferred action of each sample; or [num_samples, K], all actions from the best to
            the worst.
        feature_norm: L; an action's features have norm at most L.
        rankings: whether labels may be rankings.

    Raises:
        ValueError: if shapes are wrong or K < 2; if a feature is NaN or infinite, a norm is too large, or the largest
            entry of the features is too large or too small for squares; or if a label is neither an action nor a
            ranking of all actions.
    """
    refuse_masked("labels", labels)
    values, choices = _check_features("features", features, "[num_samples, K, dim]"), np.asarray(labels)
    num_samples, num_actions, _ = values.shape
    if num_actions < 2:
        raise ValueError(f"features must have shape [num_samples, K, dim] with K >= 2, got {values.shape}")
    allowed = [(num_samples,), (num_samples, num_actions)][: 1 + rankings]
    if choices.shape not in allowed:
        raise ValueError(f"labels must have shape {' or '.join(map(str, allowed))}, got {choices.shape}")
    _check_no_text(choices)
    wrong = ~np.isin(choices, np.arange(num_actions))
    refuse_private("labels", f"actions in [0, {num_actions})", wrong if choices.ndim == 1 else wrong.any(axis=1))
    if choices.ndim == 2:
        is_no_ranking = (np.sort(choices, axis=1) != np.arange(num_actions)).any(axis=1)
        refuse_private("labels", "rankings that hold every action once", is_no_ranking)
    norms = np.linalg.norm(values.astype(np.float64), axis=2).max(axis=1)
    worst = int(np.argmax(norms))
    if norms[worst] > feature_norm * (1 + ROUNDING):
        raise ValueError(
            f"feature_norm must be at least the norm of every action's features, got {feature_norm}, but an action of "
            f"sample {worst} has norm {norms[worst]:g}"
        )


def _check_no_text(labels: np.ndarray) -> None:
    if labels.dtype.kind in "USO" and any(isinstance(label, str | bytes) for label in labels.ravel()):
        raise ValueError(
            f"labels must be numbers, got text (dtype {labels.dtype}): convert it, for example by labels.astype(int)"
        )


def _check_features(name: str, features: ArrayLike, shape: str) -> np.ndarray:
    values = check_finite(name, features)
    if values.ndim != shape.count(",") + 1 or 0 in values.shape:
        raise ValueError(f"{name} must have shape {shape} with all sizes >= 1, got {values.shape}")
    _check_size(name, values)
    return values


def _check_size(name: str, values: np.ndarray) -> None:
    """Checks that squared norms of features, which scale noise, neither overflow nor underflow."""
    floats = values if np.issubdtype(values.dtype, np.floating) else values.astype(np.float64)
    info, sizes = np.finfo(default_float()), np.abs(floats)  # the absolute value of the smallest integer overflows
    upper, lower = np.sqrt(info.max / (4 * values.shape[-1])), np.sqrt(info.tiny) / info.eps
    worst = np.unravel_index(np.argmax(sizes), sizes.shape)
    if not (sizes[worst] == 0 or lower <= sizes[worst] <= upper):
        raise ValueError(
            f"{name} must have a largest absolute entry in [{lower:.1g}, {upper:.1g}], so that squares "
            f"are in the range of {info.dtype}, got {values[worst]:g} at index {tuple(map(int, worst))}: multiply "
            f"{name} by a constant"
        )

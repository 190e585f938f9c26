"""One estimate from one data set, with every input checked: the call for a notebook."""

import inspect
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.estimation.solver import Estimate
from jaxdp.learner import Estimator
from jaxdp.validation import check_above, check_finite


def estimate(
    estimator: Estimator, features: ArrayLike, labels: ArrayLike, *, key: jax.Array, **values: Any
) -> Estimate:
    """Privatizes the labels and fits, after checking data and values on the host.

    Args:
        estimator: what to run, for example `debiased_rr()`.
        features: [num_samples, dim] float, differential features x = phi(s, a1) - phi(s, a0); public.
        labels: [num_samples] in {0, 1}, 1 where a1 was preferred; private.
        key: of the randomness of privatizing and fitting.
        **values: what the estimator's `params` take (epsilon, delta, radius, feature_norm, ...). Where feature_norm (L)
            is given, every |x| must be at most 2 L.

    Returns:
        The estimate. What is claimed for it is `estimator.guarantee(**values)`.

    Raises:
        ValueError: if shapes are wrong, a feature is not finite or longer than 2 feature_norm, a label is not 0 or 1,
            or a value is out of range.

    >>> import jaxdp
    >>> data = jaxdp.preferences.gaussian_comparisons(jax.random.key(0), num_samples=500, dim=3)
    >>> result = estimate(jaxdp.estimation.mle(), data.features, data.labels, key=jax.random.key(1), radius=5.0)
    >>> result.theta.shape, bool(result.converged)
    ((3,), True)
    """
    feature_norm = values.get("feature_norm", np.inf)
    if "feature_norm" not in inspect.signature(estimator.params).parameters:
        values = {name: value for name, value in values.items() if name != "feature_norm"}  # checked here, used nowhere
    params = estimator.params(**values)
    check_data(features, labels, feature_norm=check_above("feature_norm", feature_norm, 0.0))
    features = jnp.asarray(features, jax.dtypes.canonicalize_dtype(float))
    key_privatize, key_fit = jax.random.split(key)
    report = estimator.privatize(key_privatize, params, features, jnp.asarray(labels).astype(jnp.int32))
    return jax.jit(estimator.fit)(key_fit, params, features, report)


def check_data(features: ArrayLike, labels: ArrayLike, *, feature_norm: float = np.inf) -> None:
    """Checks a data set on the host.

    Args:
        features: [num_samples, dim], differential features.
        labels: [num_samples].
        feature_norm: L; a differential feature's norm is at most 2 L.

    Raises:
        ValueError: if shapes are wrong, a feature is NaN, infinite or too long, or a label is not 0 or 1.
    """
    features, labels = check_finite("features", features), np.asarray(labels)
    check_finite(f"features as {jnp.result_type(float)}", features.astype(jnp.result_type(float)))
    if features.ndim != 2 or 0 in features.shape:
        raise ValueError(f"features must have shape [num_samples, dim] with both >= 1, got {features.shape}")
    if labels.shape != features.shape[:1]:
        raise ValueError(f"labels must have shape [num_samples] = {features.shape[:1]}, got {labels.shape}")
    bad = np.flatnonzero(~np.isin(labels, (0, 1)))
    if len(bad):
        raise ValueError(f"labels must be in {{0, 1}}, got {labels[bad[0]]} at index {bad[0]}")
    norms = np.linalg.norm(features.astype(np.float64), axis=1)
    worst = int(np.argmax(norms))
    if norms[worst] > 2 * feature_norm * (1 + 1e-6):  # features in float32
        raise ValueError(
            f"feature_norm must be at least half of every differential feature's norm, got {feature_norm} where "
            f"feature {worst} has norm {norms[worst]:g}"
        )

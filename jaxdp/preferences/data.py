"""Reward data: differential features of two actions, and labels for the preferred action."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from jaxdp.preferences.links import Link, logistic
from jaxdp.preferences.models import sample_comparisons
from jaxdp.validation import check_above, check_count, check_finite


class RewardData(NamedTuple):
    """Comparisons of two actions under a linear reward, with the parameter that generated the labels.

    Attributes:
        features: [num_samples, dim] float, x = φ1 - φ0, the first action's features minus the second's; |x| <= 2L.
        labels: [num_samples] int32 in {0, 1}; 1 if the first action was preferred.
        parameter: [dim] float, θ*.
        feature_norm: [] float, the bound L on |φ| for the features φ of every action.
    """

    features: jax.Array
    labels: jax.Array
    parameter: jax.Array
    feature_norm: jax.Array


def gaussian_comparisons(
    key: jax.Array,
    *,
    num_samples: int,
    dim: int,
    link: Link = logistic,
    feature_norm: float | None = None,
    parameter_norm: float | jax.Array | None = None,
    zero_sum: bool = False,
) -> RewardData:
    """Draws comparisons with standard Gaussian features and parameter.

    The first action is preferred with probability F(x·θ*), where x = φ1 - φ0. θ* and all φ are drawn from N(0, I).
    Vectors with a norm above the given bound are then rescaled to the bound. θ* depends only on the key, dim,
    parameter_norm and zero_sum. The function is pure; you can jit it, and vmap it over keys. Floats have JAX's default
    dtype.

    Args:
        key: PRNG key.
        num_samples: number of comparisons, >= 1.
        dim: number of features, >= 1.
        link: F, the probability that the first action is preferred, as a function of the margin x·θ*.
        feature_norm: L > 0, the maximum norm of φ; a φ with a larger norm is rescaled to norm L. With `inf` or None, no
            φ is rescaled. With None, L is the largest norm of the drawn φ. Such an L may be used like a bound that is
            known in advance if only the labels are private, because it is then public.
        parameter_norm: [] float, B > 0, the maximum norm of θ*; a θ* with a larger norm is rescaled to norm B. With
            None, θ* is not rescaled. May be traced.
        zero_sum: whether to subtract the mean of θ*'s entries before θ* is rescaled, so that <1, θ*> = 0.

    Returns:
        Features, labels, θ* and L.

    Raises:
        ValueError: if a count is not an integer >= 1, a norm is not > 0, or dim is 1 with zero_sum (θ* would be 0).

    Source:
        Chowdhury, Zhou & Natarajan (2023), section 6 (no norm given, zero_sum=False) and assumption 2.1 (both norms
        given, zero_sum=True).

    Deviations:
        None.

    Examples:
        >>> data = gaussian_comparisons(jax.random.key(0), num_samples=4, dim=3, zero_sum=True)
        >>> data.features.shape, data.labels.shape, abs(float(data.parameter.sum())) < 1e-6
        ((4, 3), (4,), True)
    """
    num_samples = check_count("num_samples", num_samples)
    dim = check_count("dim", dim, minimum=2 if zero_sum else 1)
    key_parameter, key_first, key_second, key_labels = jax.random.split(key, 4)

    parameter = gaussian_parameter(key_parameter, dim, parameter_norm, zero_sum)
    first = jax.random.normal(key_first, (num_samples, dim))
    second = jax.random.normal(key_second, (num_samples, dim))
    if feature_norm is None:
        norms = jnp.linalg.norm(jnp.stack([first, second]), axis=-1)
        bound = norms.max()
    else:
        bound = jnp.asarray(check_above("feature_norm", feature_norm, 0.0), first.dtype)
        first, second = clip_norm(first, bound), clip_norm(second, bound)

    features = first - second
    margins = jnp.matmul(features, parameter, precision="highest")  # otherwise accelerators round the factors
    return RewardData(features, sample_comparisons(key_labels, margins, link), parameter, bound)


def gaussian_parameter(key: jax.Array, dim: int, parameter_norm: float | jax.Array | None, zero_sum: bool) -> jax.Array:
    """Draws θ* from N(0, I), [dim] float; centres it if zero_sum, and clips its norm unless parameter_norm is None."""
    parameter = jax.random.normal(key, (dim,))
    if zero_sum:
        parameter = parameter - parameter.mean()
    if parameter_norm is not None:
        if not isinstance(parameter_norm, Tracer):
            check_above("parameter_norm", parameter_norm, 0.0)  # pyright: ignore[reportArgumentType]
        parameter = clip_norm(parameter, parameter_norm)
    return parameter


def clip_norm(vectors: jax.Array, bound: ArrayLike) -> jax.Array:
    """Rescales vectors with a norm above `bound` to the norm `bound`, and returns all other vectors unchanged.

    Args:
        vectors: [..., dim] float, finite.
        bound: [] float > 0; `inf` changes no vector.

    Returns:
        [..., dim], with the dtype of `vectors`. Norms are <= bound up to rounding (a few units in the last place).

    Raises:
        ValueError: if vectors are not floats, or the bound is not one number > 0 (a traced bound is not checked).

    Examples:
        >>> clip_norm(jnp.array([[3.0, 4.0], [0.25, 0.5]]), 2.5).tolist()
        [[1.5, 2.0], [0.25, 0.5]]
    """
    vectors = jnp.asarray(vectors)
    if not jnp.issubdtype(vectors.dtype, jnp.floating):
        raise ValueError(f"vectors must be floats, got {vectors.dtype}")
    if not isinstance(bound, Tracer):
        check_above("bound", bound, 0.0)  # pyright: ignore[reportArgumentType]
    bound = jnp.asarray(bound, vectors.dtype)
    # Each vector is first divided by the largest magnitude of its entries, so that squares and reciprocals do not
    # overflow or underflow.
    largest = jnp.max(jnp.abs(vectors), axis=-1, keepdims=True)
    shrink = jnp.where(largest > 1, 1 / 16, 1.0).astype(vectors.dtype)
    unit = vectors * shrink / jnp.where(largest > jnp.finfo(vectors.dtype).tiny, largest * shrink, 1.0)
    norms = jnp.sqrt(jnp.sum(unit * unit, axis=-1, keepdims=True))
    long = largest * norms > bound
    return jnp.where(long, unit * (jnp.where(long, bound, 1.0) / jnp.where(long, norms, 1.0)), vectors)


_ROUNDING = 1e-6  # rows that were clipped or normalised in float32 exceed their norm by a smaller relative error


def differential_features(first: ArrayLike, second: ArrayLike, *, feature_norm: float = math.inf) -> jax.Array:
    """Checks the features of the two actions of each comparison, and returns their differences.

    Args:
        first: [n, dim] finite numbers, the features φ of the action that label 1 prefers.
        second: [n, dim] finite numbers, the features of the other action.
        feature_norm: L > 0, the bound on |φ| from which sensitivities are computed; `inf` for no bound. Norms may
            exceed L by a relative error of at most 1e-6, because of float32 rounding.

    Returns:
        [n, dim], first - second, in JAX's default float dtype.

    Raises:
        ValueError: if the shapes differ or are not 2-D, an entry or a difference is not finite, feature_norm is not
            > 0, or the norm of a row exceeds feature_norm.

    Examples:
        >>> differential_features([[1.0, 0.0]], [[0.0, 1.0]], feature_norm=1.0).tolist()
        [[1.0, -1.0]]
        >>> differential_features([[1.0, 0.0]], [[0.0, 3.0]], feature_norm=1.0)
        Traceback (most recent call last):
        ValueError: feature_norm=1.0 is smaller than a feature's norm: row 0 of second has norm 3.0
    """
    feature_norm = check_above("feature_norm", feature_norm, 0.0)
    actions = {name: check_finite(name, value) for name, value in (("first", first), ("second", second))}
    for name, values in actions.items():
        if values.ndim != 2:
            raise ValueError(f"{name} must have two dimensions [n, dim], got shape {values.shape}")
    if actions["first"].shape != actions["second"].shape:
        raise ValueError(
            f"first and second must have the same shape, got {actions['first'].shape} and {actions['second'].shape}"
        )
    actions = {name: values.astype(np.float64) for name, values in actions.items()}
    for name, values in actions.items():
        norms = np.linalg.norm(values, axis=1)
        long = np.flatnonzero(norms > feature_norm * (1 + _ROUNDING))
        if len(long):
            raise ValueError(
                f"feature_norm={feature_norm} is smaller than a feature's norm: "
                f"row {long[0]} of {name} has norm {norms[long[0]]}"
            )
    features = jnp.asarray(actions["first"] - actions["second"], float)
    check_finite("first - second", features)  # the difference may overflow in the default dtype
    return features

"""K-wise reward data: the features of K actions, and a label for the preferred action."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.preferences.data import clip_norm, gaussian_parameter
from jaxdp.preferences.models import sample_choices, sample_rankings
from jaxdp.validation import check_above, check_count


class ChoiceData(NamedTuple):
    """Choices among K actions under a linear reward, with the parameter that generated the labels.

    Attributes:
        features: [num_samples, K, dim] float, the features φ of every action, |φ| <= L.
        labels: the preferred action, [num_samples] int32 in [0, K); or a ranking of all actions from the best to the
            worst, [num_samples, K] int32.
        parameter: [dim] float, θ*.
        feature_norm: [] float, the bound L on |φ|.
    """

    features: jax.Array
    labels: jax.Array
    parameter: jax.Array
    feature_norm: jax.Array


def gaussian_choices(
    key: jax.Array,
    *,
    num_samples: int,
    num_actions: int,
    dim: int,
    rankings: bool = False,
    feature_norm: float | None = None,
    parameter_norm: float | jax.Array | None = None,
    zero_sum: bool = False,
) -> ChoiceData:
    """Draws choices from a Plackett-Luce model with standard Gaussian features and parameter.

    Action k of K is preferred with a probability proportional to exp(φ_k·θ*). θ* and all φ are drawn from N(0, I).
    Vectors with a norm above the given bound are then rescaled to the bound. θ* depends only on the key, dim,
    parameter_norm and zero_sum. The function is pure; you can jit it, and vmap it over keys. Floats have JAX's default
    dtype.

    Args:
        key: PRNG key.
        num_samples: number of choices, >= 1.
        num_actions: K, >= 2.
        dim: number of features, >= 1; with zero_sum >= 2.
        rankings: True for labels that rank all K actions; False for labels that name the best action.
        feature_norm: L > 0, the maximum norm of φ; a φ with a larger norm is rescaled to norm L. With `inf` or None, no
            φ is rescaled. With None, L is the largest norm of the drawn φ. Such an L may be used like a bound that is
            known in advance if only the labels are private, because it is then public.
        parameter_norm: [] float, B > 0, the maximum norm of θ*; a θ* with a larger norm is rescaled to norm B. With
            None, θ* is not rescaled. May be traced.
        zero_sum: whether to subtract the mean of θ*'s entries before θ* is rescaled.

    Returns:
        Features, labels, θ* and L.

    Raises:
        ValueError: if a count is too small or not an integer, or a norm is not > 0.

    Source:
        Chowdhury, Zhou & Natarajan (2023), eq. (11), with the Gaussian features of its section 6.

    Deviations:
        None.

    Examples:
        >>> data = gaussian_choices(jax.random.key(0), num_samples=4, num_actions=3, dim=2)
        >>> data.features.shape, data.labels.shape, int(data.labels.max()) < 3
        ((4, 3, 2), (4,), True)
    """
    num_samples, num_actions = check_count("num_samples", num_samples), check_count("num_actions", num_actions, 2)
    dim = check_count("dim", dim, minimum=2 if zero_sum else 1)
    key_parameter, key_features, key_labels = jax.random.split(key, 3)
    parameter = gaussian_parameter(key_parameter, dim, parameter_norm, zero_sum)
    features = jax.random.normal(key_features, (num_samples, num_actions, dim))
    if feature_norm is None:
        bound = jnp.linalg.norm(features, axis=-1).max()
    else:
        bound = jnp.asarray(check_above("feature_norm", feature_norm, 0.0), features.dtype)
        features = clip_norm(features, bound)
    utilities = jnp.matmul(features, parameter, precision="highest")  # otherwise accelerators round the factors
    labels = (sample_rankings if rankings else sample_choices)(key_labels, utilities)
    return ChoiceData(features, labels, parameter, bound)

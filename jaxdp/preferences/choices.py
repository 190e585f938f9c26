"""K-wise reward data: the features of K actions, and the label of the preferred one."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.preferences.data import clip_norm, gaussian_parameter
from jaxdp.preferences.models import sample_choices, sample_rankings
from jaxdp.validation import check_above, check_count


class ChoiceData(NamedTuple):
    """Choices among K actions under a linear reward, with the parameter that generated them.

    Attributes:
        features: [num_samples, K, dim] float, φ of every action; |φ| <= L.
        labels: [num_samples] int32 in [0, K), the preferred action; or [num_samples, K] int32, all actions from the
            best to the worst.
        parameter: [dim] float, θ*.
        feature_norm: [] float, L >= |φ|.
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
    parameter_norm: float | None = None,
    zero_sum: bool = False,
) -> ChoiceData:
    """Draws choices by the Plackett-Luce model whose features and parameter are standard Gaussian.

    Action k of K is preferred with a probability proportional to exp(φ_k·θ*); θ* and all φ are N(0, I), then shrunk to
    the norms given. θ* depends on the key, dim, parameter_norm and zero_sum only. Pure: may be jitted and vmapped over
    keys. Floats are of JAX's default type.

    Args:
        key: PRNG key.
        num_samples: number of choices, >= 1.
        num_actions: K, >= 2.
        dim: number of features, >= 1.
        rankings: whether labels rank all K actions, in place of naming the best.
        feature_norm: L > 0: a longer φ is shrunk to this norm. None shrinks none, and L is the largest norm drawn,
            which may be used like a bound known in advance if only the labels are private.
        parameter_norm: B > 0: a longer θ* is shrunk to this norm; None does not shrink it.
        zero_sum: whether to subtract θ*'s mean before it is shrunk.

    Returns:
        Features, labels, θ* and L.

    Raises:
        ValueError: if a count is too small or not whole, or a norm is not > 0.

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

"""Reports of labels: unchanged, or by randomized response after a fair coin has replaced each tie."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.core import Scalar
from jaxdp.mechanisms import LabelParams, debias_labels, label_randomizer

LABELS = label_randomizer(2)
_COINS = 2**32 - 1  # folded into the key that draws coins


def report_clear(key: jax.Array, params: Any, features: jax.Array, labels: jax.Array) -> jax.Array:
    """Returns the labels unchanged; used as `privatize` of the non-private estimators."""
    del key, params, features
    return labels


def report_randomized(key: jax.Array, params: Any, features: jax.Array, labels: jax.Array) -> jax.Array:
    """Returns every user's randomized label; used as `privatize` of local estimators, such as `debiased_rr`.

    Labels of a float type may be ties, 1/2. A user with label y first draws a coin that is 1 with probability y, and
    reports the coin by randomized response. With p = sigmoid(epsilon) the report is 1 with probability (1 - p) + (2p -
    1) y, which lies in [1 - p, p] for every y in [0, 1]. So the probabilities of a report given any two labels differ
    by a factor of at most p / (1 - p) = e^epsilon, as for labels in {0, 1}, and de-biased reports have mean y. At
    epsilon = inf the label itself is reported.
    """
    if not jnp.issubdtype(labels.dtype, jnp.floating):
        return report_coins(key, params, features, labels)
    reports = report_coins(key, params, features, labels).astype(labels.dtype)
    return jnp.where(jnp.isinf(params.epsilon), labels, reports)


def report_coins(key: jax.Array, params: Any, features: jax.Array, labels: jax.Array) -> jax.Array:
    """Returns every user's randomized label, an integer in {0, 1}: int32 for float labels, else of the labels' dtype.

    Before randomization, a Bernoulli variate of mean y replaces a float label y. So fair coin flips replace ties, 1/2,
    even at epsilon = inf.
    """
    del features
    if jnp.issubdtype(labels.dtype, jnp.floating):
        key_coin = jax.random.fold_in(key, _COINS)  # a new key, since `key` decides which labels flip
        uniforms = jax.random.uniform(key_coin, labels.shape)
        labels = (uniforms < labels.astype(uniforms.dtype)).astype(jnp.int32)
    return LABELS.report(key, LabelParams(epsilon=params.epsilon), labels)


def report_by_budgets(key: jax.Array, params: Any, features: jax.Array, labels: jax.Array) -> jax.Array:
    """Returns every user's randomized label, each at a separate budget: `params.epsilon` is [num_samples].

    Labels of a float type may be ties, 1/2, which fair coin flips replace before randomization. At epsilon = inf the
    labels themselves are reported, ties as 1/2.
    """

    def report(key: jax.Array, epsilon: jax.Array, label: jax.Array) -> jax.Array:
        return report_randomized(key, LabelParams(epsilon=epsilon), features, label)

    return jax.vmap(report)(jax.random.split(key, len(labels)), jnp.asarray(params.epsilon), labels)


def unbiased_labels(report: jax.Array, epsilon: Scalar) -> jax.Array:
    """Returns an unbiased estimate ([num_samples] float) of each label from its randomized report.

    Reports are of a float type if labels may be ties; `epsilon` is [] or [num_samples].
    """
    if not jnp.issubdtype(report.dtype, jnp.floating) and jnp.ndim(epsilon) == 0:
        return debias_labels(report, epsilon)
    dtype = report.dtype if jnp.issubdtype(report.dtype, jnp.floating) else jnp.asarray(epsilon).dtype
    return (report.astype(dtype) - 0.5) / jnp.tanh(jnp.asarray(epsilon, dtype) / 2) + 0.5

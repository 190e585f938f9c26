"""The local randomizer of a label out of K labels."""

import math

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.core import LocalRandomizer, Scalar, default_float, factory, guarantee_for, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms._arrays import label_array
from jaxdp.mechanisms._randomized_response import (
    chance_for_counts,
    debias_labels,
    debias_one_hot,
    odds_for_counts,
    randomized_response,
)
from jaxdp.mechanisms.local_randomizers._bounds import TwoPoints, bounds_of
from jaxdp.mechanisms.local_randomizers._host import local_claim
from jaxdp.random import binomial, multinomial
from jaxdp.validation import check_count, check_epsilon


@pytree_dataclass
class LabelParams:
    """Traced values of a label randomizer.

    Attributes:
        epsilon: [] float, privacy budget, > 0; at infinity reports are the labels themselves.
    """

    epsilon: Scalar


@factory
def label_randomizer(num_labels: int = 2) -> LocalRandomizer:
    r"""Reports a label by randomized response: the label itself, or one of the other labels with equal probabilities.

    A label is kept with probability e^epsilon / (e^epsilon + K - 1). At epsilon = inf the report is the label itself.
    For two labels, 0 and 1, the estimate is a number. For more labels, the estimate is a vector with the one-hot vector
    as its mean; the average of these vectors over users estimates the frequency of each label.

    Args:
        num_labels: K, >= 2.

    Returns:
        A randomizer for labels [...] integers, each of one user, clipped to [0, K). Reports are [...] integers of the
        same dtype in [0, K). Estimates are [...] floats for two labels, otherwise [..., K]. For two labels, `total`
        takes the number of users with label 1, [...], among `count` users, [...], and returns the number of users with
        report 1. For more labels, `total` takes and returns the number of users with each label, [..., K]. The result
        has the dtype of the totals, int32 or int64.

    Raises:
        ValueError: if num_labels is not an integer >= 2. The result's `params` raises this error if epsilon is not > 0,
            or is so small that estimates would overflow. `report` raises it if labels are not integers of a dtype that
            can represent K - 1.

    Values:
        epsilon: the privacy budget, > 0.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one label; adjacency: replace one, by any integer.

    Source:
        Warner (1965); Kairouz, Bonawitz & Ramage (2016), for K labels.

    Deviations:
        As for `randomized_response`. `total` rounds the probability of another label up, in JAX's default float type,
        and has the errors of `binomial`.

    Math:
        A report is the label with probability $p$, and each other label with probability $q$,

        $$
        p = \frac{e^{\varepsilon}}{e^{\varepsilon} + K - 1}, \quad q = \frac{1}{e^{\varepsilon} + K - 1}
        $$

        and the estimate of the one-hot vector is

        $$
        d_j = \frac{1[\mathrm{report} = j] - q}{p - q}
        $$

    Examples:
        >>> randomizer = label_randomizer(3)
        >>> params = randomizer.params(epsilon=1.0)
        >>> report = randomizer.report(jax.random.key(0), params, 7)  # clipped to label 2
        >>> int(report) in (0, 1, 2), randomizer.estimate(params, report).shape
        (True, (3,))
    """
    num_labels = check_count("num_labels", num_labels, 2)

    def params(*, epsilon: float) -> LabelParams:
        budget = scalar_leaf("epsilon", check_epsilon(epsilon))
        scalar_leaf("an estimate at this epsilon", num_labels * (1 + 2 / float(budget)))
        return LabelParams(epsilon=budget)

    def report(key, params: LabelParams, value: ArrayLike) -> jax.Array:
        labels = jnp.clip(label_array("value", value, num_labels), 0, num_labels - 1)
        return randomized_response(key, labels, params.epsilon, num_labels=num_labels)

    def estimate(params: LabelParams, report: ArrayLike) -> jax.Array:
        if num_labels == 2:
            return debias_labels(report, params.epsilon)
        return debias_one_hot(report, params.epsilon, num_labels=num_labels)

    def total(key, params: LabelParams, totals: ArrayLike, count: ArrayLike) -> jax.Array:
        epsilon, totals = jnp.asarray(params.epsilon, default_float()), jnp.asarray(totals)
        if num_labels == 2:
            return noisy_ones(key, epsilon, totals, jnp.asarray(count))
        del count  # equals the sum of totals
        odds = jnp.where(jnp.eye(num_labels, dtype=bool), 1, odds_for_counts(epsilon, num_labels))
        moved_counts = multinomial(key, totals, jnp.broadcast_to(odds, (*totals.shape, num_labels)))
        return moved_counts.sum(axis=-2, dtype=totals.dtype)

    def spread(params: LabelParams):
        decay = math.exp(-float(params.epsilon))
        gap = -math.expm1(-float(params.epsilon))
        keep = 1 / (1 + (num_labels - 1) * decay)
        # an entry of the one-hot estimate is the larger number if the report is its label; two labels use entry 1
        return (TwoPoints(-decay / gap, (1 + (num_labels - 2) * decay) / gap, decay * keep, keep),)

    return LocalRandomizer(
        params,
        guarantee_for(params, local_claim("one label", "randomized response", numerical_delta=0.0)),
        report,
        estimate,
        total,
        *bounds_of(params, spread),
    )


def noisy_ones(key: jax.Array, epsilon: jax.Array, ones: jax.Array, count: jax.Array) -> jax.Array:
    """Draws the number of ones among `count` binary randomized responses, if `ones` of the labels are 1.

    Args:
        key: a PRNG key.
        epsilon: [] float > 0; infinity returns `ones` unchanged.
        ones: [...] int32 or int64 in [0, count].
        count: [...] of the same type.

    Returns:
        [...] of the same type.
    """
    key_ones, key_zeros = jax.random.split(key)
    move = jnp.broadcast_to(chance_for_counts(epsilon), ones.shape)
    return ones - binomial(key_ones, ones, move) + binomial(key_zeros, count - ones, move)

"""The steps of `_means`, laid out for XLA on CPU; they are tested to be equal to the plain ones bit for bit."""

import jax
import jax.numpy as jnp

from jaxdp.bandits import _means
from jaxdp.bandits._lane_kernels import array_kernel, sum_kernels
from jaxdp.bandits._means import Means
from jaxdp.numerics.kernels import WRITTEN_OUT, folded
from jaxdp.random import ties


def heard(means: Means, arm: jax.Array, report: jax.Array) -> Means:
    """`_means.heard`."""
    sums = sum_kernels(_means.added)(means.sums, arm, report)
    return Means(means.round + 1, array_kernel(_means.played)(means.plays, arm), sums)


def first_largest(scores: jax.Array) -> jax.Array:
    """`_means.first_largest`, by two elementwise minima and maxima: XLA on CPU does not vectorise an argmax."""

    def found(scores: jax.Array) -> jax.Array:
        every = jnp.arange(len(scores), dtype=jnp.int32)
        return folded(jnp.minimum, jnp.where(scores == folded(jnp.maximum, scores), every, len(scores)))

    return array_kernel(found)(scores)


def largest_bound(bounds: jax.Array, word: jax.Array) -> jax.Array:
    """`_means.largest_bound` in the order that a random word stands for, see `jaxdp.random.ties.ranks`."""

    def rank_largest(bounds: jax.Array, word: jax.Array, largest: jax.Array) -> jax.Array:
        order = jnp.where(jnp.isinf(largest), 0, ties.ranks(word, len(bounds)))
        return jnp.where(bounds == largest, order, -1)

    def largest_of(values: jax.Array) -> jax.Array:
        return folded(jnp.maximum, values)

    if len(bounds) <= WRITTEN_OUT:
        return array_kernel(_largest_of_few)(bounds, word)
    return first_largest(array_kernel(rank_largest)(bounds, word, array_kernel(largest_of)(bounds)))


def _largest_of_few(bounds: jax.Array, word: jax.Array) -> jax.Array:
    """Compares arm after arm: in one loop over lanes each arm's rank is computed once."""
    order = ties.ranks(word, len(bounds))
    best, rank, place = bounds[0], order[0], jnp.zeros(bounds.shape[1:], jnp.int32)
    for arm in range(1, len(bounds)):
        is_better = (bounds[arm] > best) | ((bounds[arm] == best) & (order[arm] > rank) & ~jnp.isinf(best))
        best, rank = jnp.where(is_better, bounds[arm], best), jnp.where(is_better, order[arm], rank)
        place = jnp.where(is_better, jnp.int32(arm), place)
    return place

"""Some functions of `_means` in a layout for XLA on CPU; tests check that results are as in `_means`, bit for bit.

In a program of 256 lanes with 3 or 10 arms, a round of `ucb` takes twice as long with `update_means` of `_means`. To
measure this, run `python benchmarks/run.py --clock processor "fast form of update_means in ucb"`.
"""

import jax
import jax.numpy as jnp

from jaxdp.bandits import _means
from jaxdp.bandits._lane_kernels import array_kernel, sum_kernels
from jaxdp.bandits._means import Means
from jaxdp.numerics.kernels import MAX_UNROLLED, tree_reduce
from jaxdp.random import ties


def update_means(means: Means, arm: jax.Array, report: jax.Array) -> Means:
    """Adds one report of `arm` to the statistics."""
    sums = sum_kernels(_means.add_report)(means.sums, arm, report)
    return Means(means.round + 1, array_kernel(_means.add_play)(means.plays, arm), sums)


def first_largest(scores: jax.Array) -> jax.Array:
    """Returns the first index of the largest score, [] int32; scores are [num_arms] numbers without NaN."""

    # XLA on CPU does not vectorise argmax, so elementwise maxima and then elementwise minima are used instead.
    def index_of_largest(scores: jax.Array) -> jax.Array:
        indices = jnp.arange(len(scores), dtype=jnp.int32)
        return tree_reduce(jnp.minimum, jnp.where(scores == tree_reduce(jnp.maximum, scores), indices, len(scores)))

    return array_kernel(index_of_largest)(scores)


def largest_bound(bounds: jax.Array, word: jax.Array) -> jax.Array:
    """Returns the arm with the largest bound, [] int32; if any bound is infinite, the first such arm.

    The random word, [] uint32, breaks ties between finite bounds, as in `ties.ranks`.
    """

    def rank_largest(bounds: jax.Array, word: jax.Array, largest: jax.Array) -> jax.Array:
        order = jnp.where(jnp.isinf(largest), 0, ties.ranks(word, len(bounds)))
        return jnp.where(bounds == largest, order, -1)

    def largest_of(values: jax.Array) -> jax.Array:
        return tree_reduce(jnp.maximum, values)

    if len(bounds) <= MAX_UNROLLED:
        return array_kernel(_largest_of_few)(bounds, word)
    return first_largest(array_kernel(rank_largest)(bounds, word, array_kernel(largest_of)(bounds)))


def _largest_of_few(bounds: jax.Array, word: jax.Array) -> jax.Array:
    # The loop is unrolled over the arms, so that XLA needs a single loop over lanes and computes each arm's rank once.
    order = ties.ranks(word, len(bounds))
    best, rank, best_arm = bounds[0], order[0], jnp.zeros(bounds.shape[1:], jnp.int32)
    for arm in range(1, len(bounds)):
        is_better = (bounds[arm] > best) | ((bounds[arm] == best) & (order[arm] > rank) & ~jnp.isinf(best))
        best, rank = jnp.where(is_better, bounds[arm], best), jnp.where(is_better, order[arm], rank)
        best_arm = jnp.where(is_better, jnp.int32(arm), best_arm)
    return best_arm

"""The steps of `_means`, laid out for XLA on CPU; they are tested to be equal to the plain ones bit for bit."""

import jax
import jax.numpy as jnp

from jaxdp.bandits import _means
from jaxdp.bandits._lane_kernels import array_kernel, sum_kernels
from jaxdp.bandits._means import Means
from jaxdp.numerics.kernels import folded
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

    def found(bounds: jax.Array, word: jax.Array) -> jax.Array:
        every = jnp.arange(len(bounds), dtype=jnp.int32)
        largest = folded(jnp.maximum, bounds)
        order = jnp.where(jnp.isinf(largest), 0, ties.ranks(word, len(bounds)))
        order = jnp.where(bounds == largest, order, -1)
        return folded(jnp.minimum, jnp.where(order == folded(jnp.maximum, order), every, len(bounds)))

    return array_kernel(found)(bounds, word)

"""How often each arm was played, and what was reported of it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import default_float
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import folded, lanes_last, own_kernel


class Means(NamedTuple):
    """What follows from the reports.

    Attributes:
        round: [] integer, rounds played.
        plays: [num_arms] integer, of each arm.
        sums: [num_arms] compensated sums of reports.
    """

    round: jax.Array
    plays: jax.Array
    sums: compensated.Sum


def no_means(num_arms: int) -> Means:
    """Before the first round."""
    plays = jnp.zeros(num_arms, jnp.result_type(int))
    return Means(plays[0], plays, compensated.zero(jnp.zeros(num_arms, default_float())))


def heard(means: Means, arm: jax.Array, report: jax.Array) -> Means:
    """After one more report of an arm."""

    def mine(arm: jax.Array, values: jax.Array) -> jax.Array:
        return jnp.arange(len(values), dtype=arm.dtype) == arm

    def played(plays: jax.Array, arm: jax.Array) -> jax.Array:
        plays = lanes_last(plays)
        return lanes_last(plays + mine(arm, plays).astype(plays.dtype))

    def added(sums: compensated.Sum, arm: jax.Array, report: jax.Array) -> compensated.Sum:
        sums = jax.tree.map(lanes_last, sums)
        return jax.tree.map(lanes_last, compensated.add(sums, jnp.where(mine(arm, sums.total), report, 0)))

    # A kernel gives one array: two kernels that do the same are faster than what both need, stored.
    sums = [own_kernel(lambda *now, i=i: added(*now)[i], means.sums, arm, report) for i in range(2)]
    return Means(means.round + 1, own_kernel(played, means.plays, arm), compensated.Sum(*sums))


def first_largest(scores: jax.Array) -> jax.Array:
    """The first index of the largest score, [] int32, of [num_arms] float without NaN."""

    def found(scores: jax.Array) -> jax.Array:
        scores = lanes_last(scores)
        every = jnp.arange(len(scores), dtype=jnp.int32).reshape(-1, *[1] * (scores.ndim - 1))
        return folded(jnp.minimum, jnp.where(scores == folded(jnp.maximum, scores), every, len(scores)))

    return own_kernel(found, scores)

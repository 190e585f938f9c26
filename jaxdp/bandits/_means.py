"""How often each arm was played, and what was reported of it."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import default_float
from jaxdp.numerics import compensated
from jaxdp.random import ties


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
    return Means(means.round + 1, played(means.plays, arm), added(means.sums, arm, report))


def played(plays: jax.Array, arm: jax.Array) -> jax.Array:
    """`Means.plays` after one more play of an arm."""
    mine = jnp.arange(len(plays), dtype=arm.dtype) == arm
    return plays + mine.astype(plays.dtype)


def added(sums: compensated.Sum, arm: jax.Array, report: jax.Array) -> compensated.Sum:
    """`Means.sums` after one more report of an arm."""
    mine = jnp.arange(len(sums.total), dtype=arm.dtype) == arm
    return compensated.add(sums, jnp.where(mine, report, 0))


def first_largest(scores: jax.Array) -> jax.Array:
    """The first index of the largest score, [] int32, of [num_arms] float without NaN."""
    return jnp.argmax(scores).astype(jnp.int32)


def largest_bound(bounds: jax.Array, order: jax.Array) -> jax.Array:
    """Returns the arm with the largest bound, [] int32; arms with infinite bounds are taken in turn.

    Args:
        bounds: [num_arms] float without NaN; infinity for an arm that has not been played.
        order: [num_arms] int32 >= 0, by `ties.ranks`, which chooses among equal finite bounds.
    """
    return ties.largest(bounds, jnp.where(jnp.isinf(bounds), 0, order))

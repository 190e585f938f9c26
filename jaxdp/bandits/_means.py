"""The number of plays and the mean report of each arm."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import default_float
from jaxdp.numerics import compensated
from jaxdp.random import ties


class Means(NamedTuple):
    """The number of plays of each arm, and the sum of the arm's reports.

    Attributes:
        round: [] integer, rounds played.
        plays: [num_arms] integer, plays of each arm.
        sums: [num_arms] compensated sums of reports.
    """

    round: jax.Array
    plays: jax.Array
    sums: compensated.Sum


def no_means(num_arms: int) -> Means:
    """Returns the statistics before the first round: no plays, and sums of 0."""
    plays = jnp.zeros(num_arms, jnp.result_type(int))
    return Means(plays[0], plays, compensated.zero(jnp.zeros(num_arms, default_float())))


def update_means(means: Means, arm: jax.Array, report: jax.Array) -> Means:
    """Adds one report of `arm` to the statistics."""
    return Means(means.round + 1, add_play(means.plays, arm), add_report(means.sums, arm, report))


def add_play(plays: jax.Array, arm: jax.Array) -> jax.Array:
    is_arm = jnp.arange(len(plays), dtype=arm.dtype) == arm
    return plays + is_arm.astype(plays.dtype)


def add_report(sums: compensated.Sum, arm: jax.Array, report: jax.Array) -> compensated.Sum:
    is_arm = jnp.arange(len(sums.total), dtype=arm.dtype) == arm
    return compensated.add(sums, jnp.where(is_arm, report, 0))


def mean_reports(sums: compensated.Sum, plays: jax.Array) -> jax.Array:
    """Returns the mean report of each arm, [num_arms] float; -infinity for an arm that has not been played."""
    totals = sums.total - sums.excess
    return jnp.where(plays > 0, totals / jnp.maximum(plays, 1).astype(totals.dtype), -jnp.inf)


def first_largest(scores: jax.Array) -> jax.Array:
    """Returns the first index of the largest score, [] int32; scores are [num_arms] float without NaN."""
    return jnp.argmax(scores).astype(jnp.int32)


def largest_bound(bounds: jax.Array, order: jax.Array) -> jax.Array:
    """Returns the arm with the largest bound, [] int32; if any bound is infinite, the first such arm.

    Args:
        bounds: [num_arms] float without NaN; infinity for an arm that has not been played.
        order: [num_arms] int32 >= 0, from `ties.ranks`; it breaks ties between finite bounds.
    """
    return ties.largest(bounds, jnp.where(jnp.isinf(bounds), 0, order))

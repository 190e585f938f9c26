"""Draws the two arms of double Thompson sampling from given posteriors."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import default_float
from jaxdp.random import beta, gamma, index_from_uniform


def may_beat(won: jax.Array, lost: jax.Array, spread: jax.Array) -> jax.Array:
    """Returns whether upper bounds on win probabilities are above 1/2, given the numbers of duels won and lost.

    `spread` is exploration_rate ln t. Without duels the result is True.
    """
    lead, duels = won - lost, won + lost
    # The upper bound is above 1/2 if and only if lead / (2 N) > -sqrt(spread / N).
    return (lead > 0) | (lead * lead < 4 * spread * duels) | (duels == 0)


def draw_left(key_first: jax.Array, key_ties: jax.Array, shapes: jax.Array, beatable: jax.Array) -> jax.Array:
    """Draws from the posterior, and returns the arm ([] int32) that beats the most arms in the draw.

    Only arms with the largest entry of `beatable` are candidates.

    Args:
        key_first: key of the draw from the posterior.
        key_ties: key of the choice among tied arms.
        shapes: [num_arms, num_arms] float >= 1: theta[i, j], the probability that the row's arm beats the column's arm,
            is distributed as Beta(shapes[i, j], shapes[j, i]).
        beatable: [num_arms] int32, for each arm the number of arms that it may beat.
    """
    i, j = np.triu_indices(len(shapes), 1)  # i < j: one draw for each pair, since theta[j, i] = 1 - theta[i, j]
    above_half = _is_above_half(key_first, shapes[i, j], shapes[j, i])
    pair, is_first = np.zeros(shapes.shape, np.int32), np.zeros(shapes.shape, bool)
    pair[i, j] = pair[j, i] = np.arange(len(i))
    is_first[i, j] = True
    # A gather, not a scatter: on a GPU, a scatter with reproducible bits takes about sixty kernels.
    beats = (above_half[pair] == is_first) & ~np.eye(len(shapes), dtype=bool)
    num_beaten = jnp.sum(beats, axis=1, dtype=jnp.int32)
    num_beaten = jnp.where(beatable == jnp.max(beatable), num_beaten, -1)  # -1 if not a candidate
    uniform = jax.random.uniform(key_ties, dtype=default_float())
    return index_from_uniform(uniform, (num_beaten == jnp.max(num_beaten)).astype(uniform.dtype))


def draw_right(key: jax.Array, left: jax.Array, first: jax.Array, second: jax.Array, uncertain: jax.Array) -> jax.Array:
    """Draws from the posterior, and returns the arm ([] int32) that most probably beats the left arm in the draw.

    Args:
        key: key of the draw from the posterior.
        left: [] int32, the left arm, which beats itself with probability 1/2.
        first: [num_arms] float >= 1, first parameters of the Beta posteriors of each arm's probability of beating the
            left arm.
        second: [num_arms] float >= 1, second parameters of these posteriors.
        uncertain: [num_arms] bool, the candidates other than the left arm: arms with a lower bound of at most 1/2
            against the left arm.
    """
    is_left = jnp.arange(len(first), dtype=jnp.int32) == left
    theta = jnp.where(is_left, 0.5, beta(key, first, second))
    return jnp.argmax(jnp.where(uncertain | is_left, theta, -1)).astype(jnp.int32)


def _is_above_half(key: jax.Array, first: jax.Array, second: jax.Array) -> jax.Array:
    """Draws Beta(first[k], second[k]) variates, and returns whether they are above 1/2. The result is [n] bool."""
    # A Beta variate is a / (a + b) for Gamma variates a and b, so it is above 1/2 if a > b.
    gamma_first, gamma_second = jnp.split(gamma(key, jnp.concatenate([first, second])), 2)
    return gamma_first > gamma_second

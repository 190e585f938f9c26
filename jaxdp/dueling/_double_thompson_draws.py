"""How double Thompson sampling draws two arms, whatever its posteriors and bounds are made of."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import default_float
from jaxdp.numerics.kernels import folded
from jaxdp.random import beta, gamma, index_at


def draw_left(key_first: jax.Array, key_ties: jax.Array, shapes: jax.Array, may_beat: jax.Array) -> jax.Array:
    """Of the arms that may beat the most others the one that beats the most in a draw from the posterior, [] int32.

    Args:
        key_first: of the draw.
        key_ties: for the choice among arms that beat equally many.
        shapes: [num_arms^2] float >= 1, row by row: the first parameter of the Beta law of row beats column.
        may_beat: [num_arms] int32, how many others each arm may beat.
    """
    num_arms = len(may_beat)
    rows, columns = np.triu_indices(num_arms, 1)  # one draw a pair
    drawn = gamma(key_first, shapes[np.r_[rows * num_arms + columns, columns * num_arms + rows]])
    row_wins = (drawn[: len(rows)] > drawn[len(rows) :]).astype(jnp.int32)  # the Beta variate is above 1/2
    sign = np.zeros((num_arms, len(rows)), np.int32)
    sign[rows, np.arange(len(rows))], sign[columns, np.arange(len(rows))] = 1, -1
    beats = jnp.stack([sum(row_wins[k] * int(sign[i, k]) for k in np.flatnonzero(sign[i])) for i in range(num_arms)])
    beats = beats + jnp.asarray((sign < 0).sum(1), jnp.int32)
    beats = jnp.where(may_beat == folded(jnp.maximum, may_beat), beats, -1)
    float_ = default_float()
    return index_at(jax.random.uniform(key_ties, dtype=float_), (beats == folded(jnp.maximum, beats)).astype(float_))


def draw_right(key: jax.Array, left: jax.Array, won: jax.Array, lost: jax.Array, uncertain: jax.Array) -> jax.Array:
    """The arm that beats the left one with the largest probability in a draw from the posterior, [] int32.

    Args:
        key: of the draw.
        left: [] int32; that an arm beats itself has probability 1/2.
        won: [num_arms] float >= 1, the first parameters of the Beta laws of arms' wins against the left one.
        lost: [num_arms] float >= 1, the second ones.
        uncertain: [num_arms] bool, the other arms that are drawn from: those that need not beat the left one.
    """
    every = jnp.arange(len(won), dtype=jnp.int32)
    rival = jnp.where(every == left, 0.5, beta(key, won, lost))
    rival = jnp.where(uncertain | (every == left), rival, -1)
    return folded(jnp.minimum, jnp.where(rival == folded(jnp.maximum, rival), every, len(won)))

"""The arms of elimination by effective Borda scores: their state, the next duel, and bounds of their scores."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Scalar
from jaxdp.core.params import pytree_dataclass
from jaxdp.random import ties, uniform_from_key
from jaxdp.random.key_bits import own_word


@pytree_dataclass
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        noise: of the counters' nodes.
        quantum: [] float, a power of two; noisy nodes are rounded to its multiples.
        squared_radius: [num_arms + 1] float >= 0, by the number of active arms: a sum of n wins deviates by up to its
            root times sqrt(n).
        intercepts: [lines] float >= 0, of bounds on a counter's error, linear in the digits of its clock.
        slopes: [levels, lines] float >= 0.
    """

    epsilon: Scalar
    noise: Any
    quantum: Scalar
    squared_radius: np.ndarray
    intercepts: np.ndarray
    slopes: np.ndarray


class Private(NamedTuple):
    """State that only the curator knows.

    Attributes:
        wins: [num_arms, num_arms] integer, duels that the row's arm, on the left, won against the column's.
        sums: [levels, num_arms] integer, the sums of the blocks of each arm's counter.
    """

    wins: jax.Array
    sums: jax.Array


class Public(NamedTuple):
    """The releases so far, and values derived from them.

    Attributes:
        active: [num_arms] bool, the remaining arms.
        dropped: [num_arms] bool, the arms that the latest round dropped.
        plays: [num_arms, num_arms] integer, duels of the row's arm, on the left, against the column's.
        digits: [levels, num_arms] int32, of the clocks of the arms' counters.
        estimates: [levels, num_arms] float, noisy sums of the blocks of each level.
        turn: [num_arms] int32, each arm's rank in the order of turns: 0, 1, ... in a random order.
    """

    active: jax.Array
    dropped: jax.Array
    plays: jax.Array
    digits: jax.Array
    estimates: jax.Array
    turn: jax.Array


def random_turns(key: jax.Array, num_arms: int) -> jax.Array:
    """Returns a random order of turns, [num_arms] int32, from a key that nothing else uses."""
    return jnp.argsort(ties.ranks(own_word(key), num_arms)).astype(jnp.int32)


def duels(public: Public) -> jax.Array:
    """Counts duels of each arm as the left one against active arms, [num_arms]."""
    return jnp.sum(jnp.where(public.active[None, :], public.plays, 0), axis=1, dtype=public.plays.dtype)


def least_played(public: Public) -> jax.Array:
    """Returns the active arm, [] int32, that was on the left least often in duels with active arms.

    Ties go to the arm with the earliest turn.
    """
    played, num_arms = duels(public), len(public.active)
    least = jnp.min(jnp.where(public.active, played, jnp.iinfo(played.dtype).max))
    turn = jnp.where(public.active & (played == least), public.turn, num_arms)
    return jnp.argmin(turn).astype(jnp.int32)


def opponent(key: jax.Array, active: jax.Array) -> jax.Array:
    """Draws one of the active arms at random, [] int32."""
    size, draw = jnp.sum(active, dtype=jnp.int32), uniform_from_key(key)
    rank = (draw * size.astype(draw.dtype)).astype(jnp.int32)  # less than size, also in float32
    return jnp.argmax(jnp.cumsum(active, dtype=jnp.int32) > rank).astype(jnp.int32)


def interval(
    squared_radius: jax.Array, estimates: jax.Array, played: jax.Array, noise_radius: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Computes bounds of effective Borda scores.

    Args:
        squared_radius: [] float, for the number of active arms.
        estimates: [..., num_arms] float, of wins.
        played: [..., num_arms] integers, duels that count.
        noise_radius: [..., num_arms] float, of the estimates.

    Returns:
        (low, high), each [..., num_arms]; infinite without duels.
    """
    n = played.astype(estimates.dtype)
    radius = jnp.sqrt(squared_radius * n) + noise_radius
    share = 1 / jnp.maximum(n, 1)
    low, high = (estimates - radius) * share, (estimates + radius) * share
    return jnp.where(played > 0, low, -jnp.inf), jnp.where(played > 0, high, jnp.inf)


def beaten(active: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """Returns [num_arms] bool, the active arms with scores below another active arm's.

    Args:
        active: [num_arms] bool.
        low: [num_arms] float, lower bounds of effective Borda scores.
        high: [num_arms] float, upper bounds.
    """
    return active & (high < jnp.max(jnp.where(active, low, -jnp.inf)))

"""State of elimination by effective Borda scores, the next duel, and bounds on the arms' scores."""

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
        noise: parameters of the noise of the counters' nodes.
        quantum: [] float, a power of two; noisy nodes are rounded to multiples of it.
        squared_radius: [num_arms + 1] float >= 0; entry k is r^2 for k active arms: r sqrt(n) bounds the error of the
            number of wins in n duels (see `radii.score_radii`; all entries are equal with the paper's constants).
        intercepts: [lines] float >= 0. Line j bounds a counter's error by intercepts[j] plus the sum over levels h of
            slopes[h, j] times digit h of the counter's clock, which is its number of entries.
        slopes: [levels, lines] float >= 0, the slopes of these lines.
    """

    epsilon: Scalar
    noise: Any
    quantum: Scalar
    squared_radius: np.ndarray
    intercepts: np.ndarray
    slopes: np.ndarray


class Private(NamedTuple):
    """The state that only the curator knows. It no longer changes once a single arm is left.

    Attributes:
        wins: [num_arms, num_arms] integer, number of duels that the row's arm, on the left, won against the column's
            arm.
        sums: [levels, num_arms] integer, the exact sums of the blocks of each arm's counter, by level of its tree.
    """

    wins: jax.Array
    sums: jax.Array


class Public(NamedTuple):
    """The releases so far, and values computed from them. They no longer change once a single arm is left.

    Attributes:
        active: [num_arms] bool, the remaining arms.
        dropped: [num_arms] bool, the arms that the latest round dropped.
        plays: [num_arms, num_arms] integer, number of duels of the row's arm, on the left, against the column's arm.
        digits: [levels, num_arms] int32, the digits of each counter's number of entries; their base is the trees'
            arity.
        estimates: [levels, num_arms] float, noisy sums of the blocks of each level of the arms' counters.
        tie_rank: [num_arms] int32, each arm's rank, from 0, in the random order that breaks ties.
    """

    active: jax.Array
    dropped: jax.Array
    plays: jax.Array
    digits: jax.Array
    estimates: jax.Array
    tie_rank: jax.Array


def random_turns(key: jax.Array, num_arms: int) -> jax.Array:
    """Draws the order that breaks ties between arms, [num_arms] int32. Nothing else may use the key."""
    return jnp.argsort(ties.ranks(own_word(key), num_arms)).astype(jnp.int32)


def duels(public: Public) -> jax.Array:
    """Returns, for each arm, the number of its duels on the left against active arms.

    The result is [num_arms] integer.
    """
    return jnp.sum(jnp.where(public.active[None, :], public.plays, 0), axis=1, dtype=public.plays.dtype)


def least_played(public: Public) -> jax.Array:
    """Returns the active arm ([] int32) that was on the left least often in duels with active arms.

    The arm with the smallest `Public.tie_rank` wins a tie.
    """
    played, num_arms = duels(public), len(public.active)
    least = jnp.min(jnp.where(public.active, played, jnp.iinfo(played.dtype).max))
    tie_rank = jnp.where(public.active & (played == least), public.tie_rank, num_arms)
    return jnp.argmin(tie_rank).astype(jnp.int32)


def opponent(key: jax.Array, active: jax.Array) -> jax.Array:
    """Draws an active arm ([] int32) uniformly at random."""
    size, draw = jnp.sum(active, dtype=jnp.int32), uniform_from_key(key)
    rank = (draw * size.astype(draw.dtype)).astype(jnp.int32)  # less than `size`, even in float32
    return jnp.argmax(jnp.cumsum(active, dtype=jnp.int32) > rank).astype(jnp.int32)


def interval(
    squared_radius: jax.Array, estimates: jax.Array, played: jax.Array, noise_radius: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """Computes lower and upper bounds on effective Borda scores.

    Args:
        squared_radius: [] float, `Params.squared_radius` for the number of active arms.
        estimates: [..., num_arms] float, estimates of the arms' wins.
        played: [..., num_arms] integers, number of duels with active arms in which each arm was on the left.
        noise_radius: [..., num_arms] float, bound on the noise in the estimates.

    Returns:
        (low, high), each [..., num_arms]; -inf and inf for arms without such duels.
    """
    n = played.astype(estimates.dtype)
    radius = jnp.sqrt(squared_radius * n) + noise_radius
    share = 1 / jnp.maximum(n, 1)
    low, high = (estimates - radius) * share, (estimates + radius) * share
    return jnp.where(played > 0, low, -jnp.inf), jnp.where(played > 0, high, jnp.inf)


def is_beaten(active: jax.Array, low: jax.Array, high: jax.Array) -> jax.Array:
    """Returns whether an arm is active and its upper bound is below an active arm's lower bound.

    The result is [num_arms] bool.
    """
    return active & (high < jnp.max(jnp.where(active, low, -jnp.inf)))

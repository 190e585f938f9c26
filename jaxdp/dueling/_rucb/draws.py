"""How RUCB chooses a hypothesis and two arms by bounds, whatever the bounds are made of."""

import jax
import jax.numpy as jnp

from jaxdp.numerics.kernels import own_kernel
from jaxdp.random.choice import index_at

UNMET = 1.5  # the bound of two arms of which nothing is known, less 1/2


def next_hypothesis(champions: jax.Array, hypothesis: jax.Array) -> jax.Array:
    """The arm that is taken for the best, [] int32.

    It is the only champion, where there is one alone; else the hypothesis of the round before, if that is a champion
    still; else -1, which is none.

    Args:
        champions: [num_arms] bool.
        hypothesis: [] int32, of the round before.
    """
    is_alone = jnp.sum(champions, dtype=jnp.int32) == 1
    is_kept = (hypothesis >= 0) & champions[hypothesis]
    return jnp.where(is_alone, jnp.argmax(champions).astype(jnp.int32), jnp.where(is_kept, hypothesis, -1))


def draw_left(uniform: jax.Array, champions: jax.Array, hypothesis: jax.Array) -> jax.Array:
    """A champion, [] int32: the hypothesis half of the time. If there is no champion, any arm.

    Args:
        uniform: [] float in [0, 1).
        champions: [num_arms] bool.
        hypothesis: [] int32, of this round.
    """
    drawn_from = champions | ~jnp.any(champions)
    others = jnp.sum(drawn_from, dtype=jnp.int32) - 1
    is_hypothesis = jnp.arange(len(champions), dtype=jnp.int32) == hypothesis
    odds = jnp.where(is_hypothesis, jnp.maximum(others, 1), 1)
    return index_at(uniform, jnp.where(drawn_from, odds, 0).astype(uniform.dtype))


def draw_right(uniform: jax.Array, bounds: jax.Array, left: jax.Array) -> jax.Array:
    """The arm with the largest bound, [] int32; of those with equal ones any, but the left one.

    Args:
        uniform: [] float in [0, 1).
        bounds: [num_arms] float, against the left arm, less 1/2; that of the left arm itself is taken for 0.
        left: [] int32.
    """
    is_left = jnp.arange(len(bounds), dtype=jnp.int32) == left
    # Stored: XLA on CPU would compute them anew for each use, and none might then equal the maximum.
    bounds = own_kernel(lambda bounds, is_left: jnp.where(is_left, 0, bounds), bounds, is_left)
    tied = bounds == jnp.max(bounds)
    others = tied & ~is_left
    return index_at(uniform, jnp.where(jnp.any(others), others, tied).astype(uniform.dtype))

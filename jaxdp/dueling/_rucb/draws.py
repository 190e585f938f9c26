"""Finds the hypothesis of RUCB, and draws the two arms of its duel."""

import jax
import jax.numpy as jnp

from jaxdp.numerics.kernels import own_kernel
from jaxdp.random.choice import index_from_uniform

UNMET = 1.5  # the bound of two arms that have not met, minus 1/2


def next_hypothesis(champions: jax.Array, hypothesis: jax.Array) -> jax.Array:
    """Returns the hypothesised best arm ([] int32), or -1 if there is none.

    If there is exactly one champion, this arm is the hypothesis. Otherwise the previous round's hypothesis is kept if
    it is still a champion.

    Args:
        champions: [num_arms] bool, arms that may beat all others.
        hypothesis: [] int32, the previous round's hypothesis, or -1.
    """
    is_alone = jnp.sum(champions, dtype=jnp.int32) == 1
    is_kept = (hypothesis >= 0) & champions[hypothesis]
    return jnp.where(is_alone, jnp.argmax(champions).astype(jnp.int32), jnp.where(is_kept, hypothesis, -1))


def draw_left(uniform: jax.Array, champions: jax.Array, hypothesis: jax.Array) -> jax.Array:
    """Draws a champion, [] int32, or one of all arms if there is no champion.

    If there are other champions, the hypothesis has probability 1/2, and the others share the rest equally. Without a
    hypothesis, all have the same probability.

    Args:
        uniform: [] float in [0, 1).
        champions: [num_arms] bool, arms that may beat all others.
        hypothesis: [] int32, the hypothesised best arm of this round, or -1.
    """
    candidates = champions | ~jnp.any(champions)
    num_others = jnp.sum(candidates, dtype=jnp.int32) - 1
    is_hypothesis = jnp.arange(len(champions), dtype=jnp.int32) == hypothesis
    odds = jnp.where(is_hypothesis, jnp.maximum(num_others, 1), 1)
    return index_from_uniform(uniform, jnp.where(candidates, odds, 0).astype(uniform.dtype))


def draw_right(uniform: jax.Array, bounds: jax.Array, left: jax.Array) -> jax.Array:
    """Returns the arm with the largest bound, [] int32; breaks ties at random among arms other than the left arm.

    Args:
        uniform: [] float in [0, 1).
        bounds: [num_arms] float, upper bounds on the probability of beating the left arm, minus 1/2, times any number >
            0. The left arm's entry is replaced by 0.
        left: [] int32.
    """
    is_left = jnp.arange(len(bounds), dtype=jnp.int32) == left
    # A kernel stores the bounds. Otherwise XLA on CPU would compute them again for each use, and perhaps no bound would
    # equal the maximum.
    bounds = own_kernel(lambda bounds, is_left: jnp.where(is_left, 0, bounds), bounds, is_left)
    tied = bounds == jnp.max(bounds)
    other_arms = tied & ~is_left
    return index_from_uniform(uniform, jnp.where(jnp.any(other_arms), other_arms, tied).astype(uniform.dtype))

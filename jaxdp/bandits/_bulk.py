"""What learners of the central model share that take many rounds at once: turns counted, and rewards added up."""

import jax
import jax.numpy as jnp

from jaxdp.core import CountPlan


def rewards_of(feedback: jax.Array, length: jax.Array, integer: jnp.dtype) -> jax.Array:
    """Rewards of a block's first `length` rounds, clipped to {0, 1}, and 0 in its other rounds: [rounds] integer."""
    planned = jnp.arange(len(feedback), dtype=length.dtype) < length
    return jnp.where(planned, jnp.clip(feedback, 0, 1), 0).astype(integer)


def totals_of(arms: jax.Array, rewards: jax.Array, num_arms: int) -> jax.Array:
    """The rewards of each arm, added up: [num_arms] integer, of the arms and rewards of some rounds."""
    return rewards @ jax.nn.one_hot(arms, num_arms, dtype=rewards.dtype)


def turns(place: jax.Array, size: jax.Array | int, played: jax.Array, ahead: jax.Array) -> jax.Array:
    """How many of the next `ahead` rounds, after `played` ones, the place-th of `size` arms in turn has."""
    last = played + ahead - 1
    return (last - place) // size - (played - 1 - place) // size


def as_counted(key, params, public, plan: CountPlan, totals: jax.Array) -> tuple[jax.Array, jax.Array]:
    """`privatize_counts` in the central model: the curator sees how often each arm was played, and its rewards."""
    del key, params, public
    return plan.counts, totals

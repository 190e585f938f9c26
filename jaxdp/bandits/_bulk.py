"""Numbers of plays and totals of rewards, for learners in the central model that play many rounds in one step."""

import jax
import jax.numpy as jnp

from jaxdp.numerics.kernels import own_kernel


def clip_rewards(feedback: jax.Array, length: jax.Array, integer: jnp.dtype) -> jax.Array:
    """Clips rewards of the first `length` rounds to {0, 1}, and sets all others to 0; returns [rounds] `integer`s."""
    planned = jnp.arange(len(feedback), dtype=length.dtype) < length
    return jnp.where(planned, jnp.clip(feedback, 0, 1), 0).astype(integer)


def total_per_arm(arms: jax.Array, rewards: jax.Array, num_arms: int) -> jax.Array:
    """Returns the sum of each arm's rewards, [num_arms] integer; `arms` and `rewards` are [rounds]."""
    return rewards @ jax.nn.one_hot(arms, num_arms, dtype=rewards.dtype)


def total_turns(rewards: jax.Array, played: jax.Array, num_arms: int) -> jax.Array:
    """Returns the sum of each arm's rewards, [num_arms] integer, if arms are played in turn after `played` rounds.

    `rewards` are [rounds] integers.
    """

    def add(rewards: jax.Array) -> jax.Array:
        turns = jnp.pad(rewards, (0, -len(rewards) % num_arms)).reshape(-1, num_arms)
        return turns.sum(axis=0, dtype=rewards.dtype)

    # The sum is a separate kernel. If XLA fused it with the drawing of rewards, rewards would be drawn by scalar code.
    return jnp.roll(own_kernel(add, rewards), played % num_arms)


def count_turns(position: jax.Array, size: jax.Array | int, played: jax.Array, ahead: jax.Array) -> jax.Array:
    """Counts how often an arm is played in the `ahead` rounds after `played` rounds.

    `size` arms are played in turn, and `position` is the arm's position among these arms.
    """
    last = played + ahead - 1
    return (last - position) // size - (played - 1 - position) // size

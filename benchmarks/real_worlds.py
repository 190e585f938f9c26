"""Worlds with real-valued data, cheap to draw, and a counter that is fed with them as if it were a learner."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.core import Environment, Guarantee, Learner, State
from jaxdp.mechanisms import Counter
from jaxdp.random import simulation_bits

WIDTH = 0.4  # of the uniform distribution around a mean


def uniforms(key: jax.Array, size: int) -> jax.Array:
    """Returns [size] float32 in [0, 1), from the words of a round's key."""
    return (simulation_bits(key, size) >> 8).astype(jnp.int32).astype(jnp.float32) * np.float32(2**-24)


def real_losses(means: np.ndarray) -> Environment:
    """Returns a world of losses that are uniform around their means."""
    means = np.asarray(means, np.float32)

    def shown(key: jax.Array, params: np.ndarray, action: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        losses = jnp.asarray(params) - WIDTH / 2 + WIDTH * uniforms(key, len(means))
        return losses, {"pseudo_regret": jnp.asarray(params)[action] - jnp.min(params)}

    def feedback(key, params, world, action):
        return (world, *shown(key, params, action))

    def block(keys, params, world, contexts, actions):
        return (world, *jax.vmap(lambda key, action: shown(key, params, action))(keys, actions))

    return Environment(params=lambda: means, init=lambda key, params: (), context=None, feedback=feedback, block=block)


def real_rewards(means: np.ndarray) -> Environment:
    """Returns a world in which an arm pays a reward that is uniform around its mean."""
    means = np.asarray(means, np.float32)

    def shown(key: jax.Array, params: np.ndarray, action: jax.Array) -> tuple[jax.Array, dict[str, jax.Array]]:
        mean = jnp.asarray(params)[action]
        return mean - WIDTH / 2 + WIDTH * uniforms(key, 1)[0], {"pseudo_regret": jnp.max(params) - mean}

    def feedback(key, params, world, action):
        return (world, *shown(key, params, action))

    def block(keys, params, world, contexts, actions):
        return (world, *jax.vmap(lambda key, action: shown(key, params, action))(keys, actions))

    return Environment(params=lambda: means, init=lambda key, params: (), context=None, feedback=feedback, block=block)


def counting(counter: Counter, size: int) -> Learner:
    """Returns a learner that feeds a counter with all losses, and plays the expert with the least noisy total."""

    def init(key: jax.Array, params: Any) -> State:
        state = counter.init(key, params, (size,), dtype=float)
        return State(state, counter.read(params, state))

    def update(key: jax.Array, params: Any, state: State, report: jax.Array) -> State:
        private = counter.feed(key, params, state.private, report)
        return State(private, counter.read(params, private))

    def guarantee(**values: Any) -> Guarantee:
        raise NotImplementedError("a benchmark claims nothing")

    return Learner(
        params=counter.params,
        init=init,
        act=lambda key, params, public, context: jnp.argmin(public).astype(jnp.int32),
        privatize=lambda key, params, public, context, action, feedback: feedback,
        update=update,
        guarantee=guarantee,
        horizon=counter.horizon,
    )

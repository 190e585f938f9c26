"""Runs of counters that several tests share."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.mechanisms import Counter
from jaxdp.mechanisms.tape import recording

NUM_DRAWS = 10_000


def keys_of(seed: int, length: int) -> jax.Array:
    return jax.random.split(jax.random.key(seed), length)


def fed_one_by_one(counter: Counter, keys, params, values):
    """Returns `read` after each entry."""

    @jax.jit
    def run(keys, params, values):
        def step(state, now):
            state = counter.feed(now[0], params, state, now[1])
            return state, counter.read(params, state)

        start = counter.init(keys[0], params, values.shape[1:], dtype=values.dtype)
        return jax.lax.scan(step, start, (keys, values))[1]

    return np.asarray(run(keys, params, values))


def errors(counter: Counter, params, length: int, keys=None) -> np.ndarray:
    """Returns errors of many counters on one stream, [length, NUM_DRAWS] float64."""
    values = jax.random.randint(jax.random.key(9), (length,), 0, 2)
    streams = jnp.broadcast_to(values[:, None], (length, NUM_DRAWS))
    estimates = jax.jit(counter.prefixes)(keys_of(8, length) if keys is None else keys, params, streams)
    return np.asarray(estimates, np.float64) - np.cumsum(np.asarray(values))[:, None]


def check_variance(found: np.ndarray, variance: np.ndarray) -> None:
    """Checks mean 0 and this variance at each time, to 5 standard errors; kurtosis is at most a Laplace variable's."""
    assert np.all(np.abs(found.mean(axis=1)) <= 5 * np.sqrt(variance / NUM_DRAWS))
    assert np.all(np.abs(np.square(found).mean(axis=1) / variance - 1) <= 5 * np.sqrt(5 / NUM_DRAWS))


def drawn_noise(counter: Counter, keys, params, values) -> np.ndarray:
    """Returns the standard normal variates [length, ...] that a counter draws when it is fed a stream."""

    @jax.jit
    def run(keys, params, values):
        def step(state, now):
            with recording() as entries:
                state = counter.feed(now[0], params, state, now[1])
            return state, entries[0].noise

        start = counter.init(keys[0], params, values.shape[1:], dtype=values.dtype)
        return jax.lax.scan(step, start, (keys, values))[1]

    return np.asarray(run(keys, params, values), np.float64)

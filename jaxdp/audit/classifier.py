"""Trains a small classifier that estimates the log likelihood ratio of outputs under two inputs."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdp.random import fast_key

STEPS = 300
BATCH = 1024  # per input and step
LEARNING_RATE = 0.02
HIDDEN = 16
LARGEST_QUADRATIC = 8  # up to this number of coordinates, all products of two are features
LARGEST_FEATURE = 1e6  # keeps squares of heavy tails finite in float32


class Weights(NamedTuple):
    """A classifier: logit = features(z) . linear + bias + relu(z . inner + offset) . outer, z = (x - center) / scale.

    Attributes:
        center: [m] float, pooled mean.
        scale: [m] float > 0, pooled standard deviation.
        trained: linear [num_features], bias [], inner [m, HIDDEN], offset [HIDDEN] and outer [HIDDEN] float.
    """

    center: jax.Array
    scale: jax.Array
    trained: dict[str, jax.Array]


def features(z: jax.Array) -> jax.Array:
    """Returns features of standardised outputs [n, m]: values, absolute values, and products of two (or squares)."""
    products = jnp.square(z)
    if z.shape[1] <= LARGEST_QUADRATIC:
        rows, columns = np.triu_indices(z.shape[1])
        products = z[:, rows] * z[:, columns]
    return jnp.concatenate([z, jnp.abs(z), products], axis=1)


def logit(weights: Weights, outputs: jax.Array) -> jax.Array:
    """Returns the estimated log likelihood ratio, first input over second, of outputs [n, m] -> [n].

    NaN and infinity count as the mean. If an output may have NaN or infinity, its columns must include indicators.
    """
    z = (outputs - weights.center[None]) / weights.scale[None]
    z = jnp.clip(jnp.where(jnp.isinf(outputs) | jnp.isnan(z), 0, z), -LARGEST_FEATURE, LARGEST_FEATURE)
    trained = weights.trained
    hidden = jax.nn.relu(z @ trained["inner"] + trained["offset"][None])
    return features(z) @ trained["linear"] + trained["bias"] + hidden @ trained["outer"]


def train(key: jax.Array, first: np.ndarray, second: np.ndarray) -> Weights:
    """Trains a classifier of first [n, m] against second [n, m] by Adam on the cross-entropy of random batches."""
    pooled = np.concatenate([first, second])
    pooled = np.where(np.isfinite(pooled), pooled, np.nan)
    is_finite = np.any(np.isfinite(pooled), axis=0)
    pooled[:, ~is_finite] = 0
    center, scale = np.nanmean(pooled, axis=0, dtype=np.float64), np.nanstd(pooled, axis=0, dtype=np.float64)
    scale = np.where(scale > 0, scale, 1.0)
    dtype, size = first.dtype, first.shape[1]
    num_features = jax.eval_shape(features, jax.ShapeDtypeStruct((1, size), dtype)).shape[1]
    key_inner, key_offset, key_batches = jax.random.split(key, 3)
    start = {
        "linear": jnp.zeros(num_features, dtype),
        "bias": jnp.zeros((), dtype),
        "inner": jax.random.normal(key_inner, (size, HIDDEN), dtype) / np.sqrt(size, dtype=dtype),
        "offset": jax.random.normal(key_offset, (HIDDEN,), dtype),
        "outer": jnp.zeros(HIDDEN, dtype),
    }
    weights = Weights(jnp.asarray(center, dtype), jnp.asarray(scale, dtype), start)
    with jax.numpy_dtype_promotion("standard"):  # Optax's Adam promotes
        return _train(key_batches, weights, first, second)


@jax.jit
def _train(key: jax.Array, start: Weights, first: jax.Array, second: jax.Array) -> Weights:
    optimizer = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, STEPS))

    def loss(trained: dict[str, jax.Array], first_batch: jax.Array, second_batch: jax.Array) -> jax.Array:
        weights = start._replace(trained=trained)
        return jnp.mean(jax.nn.softplus(-logit(weights, first_batch))) + jnp.mean(
            jax.nn.softplus(logit(weights, second_batch))
        )

    def step(carry: Any, key: jax.Array) -> tuple[Any, None]:
        trained, state = carry
        rows = jax.random.randint(key, (2, BATCH), 0, first.shape[0])
        gradient = jax.grad(loss)(trained, first[rows[0]], second[rows[1]])
        updates, state = optimizer.update(gradient, state, trained)
        return (optax.apply_updates(trained, updates), state), None

    carry = (start.trained, optimizer.init(start.trained))
    (trained, _), _ = jax.lax.scan(step, carry, jax.random.split(fast_key(key), STEPS))
    return start._replace(trained=trained)

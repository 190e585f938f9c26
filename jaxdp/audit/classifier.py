"""Estimates of a log likelihood ratio from outputs under two inputs: small classifiers, trained with Optax."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax

from jaxdp.random import fast

STEPS = 300
BATCH = 1024  # per input and step
LEARNING_RATE = 0.02
HIDDEN = 16
LARGEST_QUADRATIC = 8  # coordinates up to which all products are features
LARGEST_FEATURE = 1e6  # keeps squares of heavy tails finite in float32


class Weights(NamedTuple):
    """A classifier: logit = features . linear + bias (+ relu(z . inner + offset) . outer), z = (x - center) / scale.

    Attributes:
        center: [m] float, pooled mean.
        scale: [m] float > 0, pooled standard deviation.
        linear: [num_features] float.
        bias: [] float.
        hidden: (inner [m, h], offset [h], outer [h]) of a layer of rectified units; None for a logistic regression.
    """

    center: jax.Array
    scale: jax.Array
    linear: jax.Array
    bias: jax.Array
    hidden: tuple[jax.Array, jax.Array, jax.Array] | None


def features(z: jax.Array) -> jax.Array:
    """Of standardised outputs [n, m]: themselves, absolute values, and products of two (of many, squares only)."""
    products = jnp.square(z)
    if z.shape[1] <= LARGEST_QUADRATIC:
        rows, columns = np.triu_indices(z.shape[1])
        products = z[:, rows] * z[:, columns]
    return jnp.concatenate([z, jnp.abs(z), products], axis=1)


def logit(weights: Weights, outputs: jax.Array) -> jax.Array:
    """The estimated log likelihood ratio, first input over second, of outputs [n, m] -> [n]; NaN counts as the mean."""
    z = (outputs - weights.center[None]) / weights.scale[None]
    z = jnp.clip(jnp.where(jnp.isnan(z), 0, z), -LARGEST_FEATURE, LARGEST_FEATURE)
    value = features(z) @ weights.linear + weights.bias
    if weights.hidden is None:
        return value
    inner, offset, outer = weights.hidden
    return value + jax.nn.relu(z @ inner + offset[None]) @ outer


def train(key: jax.Array, first: np.ndarray, second: np.ndarray, *, network: bool) -> Weights:
    """Fits a classifier of first [n, m] against second [n, m] by Adam on the cross-entropy of random batches.

    Args:
        key: of the start and the batches.
        first: [n, m] float, outputs under the first input.
        second: [n, m] float, outputs under the second.
        network: with a hidden layer, or a logistic regression.

    Returns:
        The weights, in the outputs' dtype.
    """
    pooled = np.concatenate([first, second])
    pooled = np.where(np.isfinite(pooled), pooled, np.nan)
    known = np.any(np.isfinite(pooled), axis=0)
    pooled[:, ~known] = 0
    center, scale = np.nanmean(pooled, axis=0, dtype=np.float64), np.nanstd(pooled, axis=0, dtype=np.float64)
    scale = np.where(scale > 0, scale, 1.0)
    dtype, size = first.dtype, first.shape[1]
    num_features = jax.eval_shape(features, jax.ShapeDtypeStruct((1, size), dtype)).shape[1]
    key_start, key_batches = jax.random.split(key)
    hidden = None
    if network:
        key_inner, key_offset = jax.random.split(key_start)
        inner = jax.random.normal(key_inner, (size, HIDDEN), dtype) / np.sqrt(size, dtype=dtype)
        hidden = (inner, jax.random.normal(key_offset, (HIDDEN,), dtype), jnp.zeros(HIDDEN, dtype))
    start = Weights(
        jnp.asarray(center, dtype),
        jnp.asarray(scale, dtype),
        jnp.zeros(num_features, dtype),
        jnp.zeros((), dtype),
        hidden,
    )
    with jax.numpy_dtype_promotion("standard"):  # Optax's Adam promotes
        return _train(key_batches, start, first, second)


@jax.jit
def _train(key: jax.Array, start: Weights, first: jax.Array, second: jax.Array) -> Weights:
    optimizer = optax.adam(optax.cosine_decay_schedule(LEARNING_RATE, STEPS))

    def loss(trained: Any, batches: tuple[jax.Array, jax.Array]) -> jax.Array:
        weights = start._replace(linear=trained[0], bias=trained[1], hidden=trained[2])
        here, there = (logit(weights, batch) for batch in batches)
        return jnp.mean(jax.nn.softplus(-here)) + jnp.mean(jax.nn.softplus(there))

    def step(carry, key):
        trained, state = carry
        rows = jax.random.randint(key, (2, BATCH), 0, first.shape[0])
        gradient = jax.grad(loss)(trained, (first[rows[0]], second[rows[1]]))
        updates, state = optimizer.update(gradient, state, trained)
        return (optax.apply_updates(trained, updates), state), None

    trained: Any = (start.linear, start.bias, start.hidden)
    (trained, _), _ = jax.lax.scan(step, (trained, optimizer.init(trained)), jax.random.split(fast(key), STEPS))
    return start._replace(linear=trained[0], bias=trained[1], hidden=trained[2])

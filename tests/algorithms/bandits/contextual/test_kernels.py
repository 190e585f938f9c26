"""Kernels of contextual bandits that are laid out for lanes equal their plain forms, alone and under `jax.vmap`."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.bandits.contextual import _contexts, _model, linear_contexts
from jaxdp.core import default_float
from jaxdp.random import ties
from jaxdp.random.key_bits import own_word

KEY = partial(jax.random.key, 7)
ARMS, DIM, LANES = 20, 7, 5


def contexts_of(num_arms=ARMS, dim=DIM):
    return jax.random.normal(KEY(), (LANES, num_arms, dim), default_float())


def model_of(dim=DIM):
    theta = jax.random.normal(jax.random.fold_in(KEY(), 1), (dim,), default_float())
    return _model.initial_model(theta, jnp.asarray(2, theta.dtype), jnp.ones((), theta.dtype), jnp.zeros((), jnp.int32))


def both_ways(function, *inputs):
    """Computes in all lanes at once, and one after the other."""
    together, alone = jax.jit(jax.vmap(function))(*inputs), jax.jit(function)
    each = [alone(*(x[lane] for x in inputs)) for lane in range(LANES)]
    np.testing.assert_allclose(together, np.stack(each), rtol=1e-5)
    return np.asarray(together)


@pytest.mark.parametrize("num_arms", [2, ARMS, 70])
def test_the_context_played(num_arms):
    contexts, arms = contexts_of(num_arms), jnp.asarray([0, 1, num_arms - 1, 1, num_arms // 2], jnp.int32)
    found = both_ways(_contexts.select_context, contexts, arms)
    np.testing.assert_array_equal(found, np.asarray(contexts)[np.arange(LANES), arms])


@pytest.mark.parametrize("dim", [1, DIM, 20, 40])
def test_products(dim):
    contexts = contexts_of(dim=dim)
    vector = jnp.linspace(-1, 1, dim, dtype=contexts.dtype)
    found = both_ways(lambda contexts: _contexts.products(contexts, vector), contexts)
    np.testing.assert_allclose(found, np.asarray(contexts, np.float64) @ np.asarray(vector, np.float64), atol=1e-5)


def test_the_largest_mean():
    means = contexts_of()[..., 0].at[3, 2].set(jnp.nan)
    np.testing.assert_array_equal(both_ways(_contexts.largest, means), np.max(means, axis=1))


@pytest.mark.parametrize("num_arms", [2, ARMS, 70])
def test_the_best_arm(num_arms):
    """Checks that one of the tied arms is chosen, and that NaN is the largest."""
    contexts = contexts_of(num_arms)
    contexts = contexts.at[1, 1].set(contexts[1, 0]).at[2].set(0).at[3, num_arms - 1].set(jnp.nan)
    contexts = contexts.at[4].set(jnp.nan)
    keys = jax.random.split(KEY(), LANES)
    found = both_ways(lambda key, contexts: _model.best_arm(key, model_of(), contexts), keys, contexts)
    upper_bounds = jax.jit(_model.upper_bounds)
    bounds = np.nan_to_num(np.stack([upper_bounds(model_of(), each) for each in contexts]), nan=np.inf)
    order = np.asarray(jax.jit(jax.vmap(lambda key: ties.ranks(own_word(key), num_arms)))(keys))
    largest = bounds == bounds.max(axis=1, keepdims=True)
    np.testing.assert_array_equal(found, np.argmax(np.where(largest, order, -1), axis=1))
    assert largest.sum(axis=1)[2:].tolist() == [num_arms, 1, num_arms]
    assert found[3] == num_arms - 1


@pytest.mark.parametrize("num_arms", [ARMS, 70])
def test_contexts_of_lanes(num_arms):
    """Checks that contexts of a round are the same alone, in lanes, and many rounds at once."""
    world = linear_contexts("ball", num_arms=num_arms, dim=DIM, gap=0.3)
    params = world.params()
    start = jax.vmap(lambda key: world.init(key, params))(jax.random.split(KEY(), LANES))

    def shown(start):
        assert world.context is not None
        return world.context(KEY(), params, start)

    def many(start):
        assert world.contexts is not None
        return world.contexts(jax.random.split(KEY(), 3), params, start)

    show = jax.jit(shown)
    alone = np.stack([show(jax.tree.map(lambda leaf, lane=lane: leaf[lane], start)) for lane in range(LANES)])
    np.testing.assert_allclose(jax.jit(jax.vmap(shown))(start), alone, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(jax.jit(jax.vmap(many))(start)[:, 0], alone, rtol=1e-5, atol=1e-6)
    assert alone.shape == (LANES, num_arms, DIM)
    assert len(np.unique(alone[:, 0, 0])) == LANES

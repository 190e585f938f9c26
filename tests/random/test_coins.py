"""Events of given probabilities, and draws of an index among many."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.random.choice import index_from_uniform, inline_index_at
from jaxdp.random.coins import coins

FLOAT = jnp.result_type(float)
TRIALS = 40_000


@pytest.mark.precision
@pytest.mark.parametrize("size", [9, 40])
def test_frequencies_and_independence(size):
    """Checks both words of a hash: entries of the two halves must be independent."""
    chances = jnp.asarray(np.linspace(0, 1, size), FLOAT)
    found = np.asarray(jax.jit(jax.vmap(lambda key: coins(key, chances)))(jax.random.split(jax.random.key(0), TRIALS)))
    assert set(np.unique(found)) == {0.0, 1.0}
    spread = np.sqrt(np.asarray(chances) * (1 - np.asarray(chances)) / TRIALS)
    assert (np.abs(found.mean(0) - chances) <= 5 * spread).all()
    inner = found[:, 1:-1]
    correlations = np.corrcoef(inner.T) - np.eye(size - 2)
    assert np.abs(correlations).max() < 5 / np.sqrt(TRIALS)
    planted = np.corrcoef(np.hstack([inner, inner[:, :1]]).T) - np.eye(size - 1)
    assert np.abs(planted).max() > 5 / np.sqrt(TRIALS)


def test_of_one_key_a_smaller_chance_gives_no_more():
    keys = jax.random.split(jax.random.key(1), 200)
    low, high = jnp.full(7, 0.3, FLOAT), jnp.full(7, 0.6, FLOAT)
    few, many = (np.asarray(jax.vmap(lambda key, p=p: coins(key, p))(keys)) for p in (low, high))
    assert (few <= many).all()
    assert (few < many).any()


@pytest.mark.parametrize("size", [2, 16, 17, 37, 64])
def test_an_index_of_many_is_that_of_the_plain_form(size):
    generator = np.random.default_rng(size)
    weights = generator.exponential(size=(400, size)) * (generator.random((400, size)) < 0.5)
    weights[:, size // 2] += 0.01
    weights, uniforms = jnp.asarray(weights, FLOAT), jnp.asarray(generator.random(400), FLOAT)
    plain = jax.jit(jax.vmap(lambda u, w: inline_index_at(u, w)))(uniforms, weights)
    found = jax.jit(jax.vmap(index_from_uniform))(uniforms, weights)
    assert (np.asarray(plain) == np.asarray(found)).all()
    planted = jax.jit(jax.vmap(index_from_uniform))(0.9 * uniforms, weights)
    assert (np.asarray(plain) != np.asarray(planted)).any()

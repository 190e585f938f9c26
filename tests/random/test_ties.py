"""Orders that break ties: all are as likely, independent of noise from the same key, and used for ties alone."""

import functools
import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.stats

from jaxdp.random import ties
from jaxdp.random.key_bits import own_word

SIZE = 100_000
KEYS = functools.cache(lambda: jax.vmap(lambda t: jax.random.fold_in(jax.random.key(8), t))(jnp.arange(SIZE)))


def orders(function, size):
    """Counts each order of `size` entries."""
    found = np.asarray(jax.jit(jax.vmap(lambda key: jnp.argsort(function(key, size))))(KEYS()))
    codes = found @ size ** np.arange(size)
    every = [np.asarray(order) @ size ** np.arange(size) for order in itertools.permutations(range(size))]
    return [int((codes == code).sum()) for code in every]


WORDS = {"own": own_word, "beside noise": ties.word_beside}


@pytest.mark.parametrize("size", [2, 3, 4])
@pytest.mark.parametrize("name", WORDS)
def test_all_orders_are_as_likely(name, size):
    assert scipy.stats.chisquare(orders(lambda key, size: ties.ranks(WORDS[name](key), size), size)).pvalue > 1e-6
    if size == 4:  # planted: a rotation
        rotated = orders(lambda key, size: (jnp.arange(size) + jax.random.randint(key, (), 0, size)) % size, size)
        assert scipy.stats.chisquare(rotated).pvalue < 1e-6


def test_the_order_does_not_tell_of_noise_from_the_same_key():
    def one(key):
        return jax.random.laplace(key, (3,)), ties.ranks(ties.word_beside(key), 3)

    noise, order = map(np.asarray, jax.jit(jax.vmap(one))(KEYS()))
    both = np.argmax(noise, axis=1) * 3 + np.argmax(order, axis=1)
    assert scipy.stats.chisquare(np.bincount(both, minlength=9)).pvalue > 1e-6
    itself = np.argmax(noise, axis=1) * 4  # planted: noise that is used twice
    assert scipy.stats.chisquare(np.bincount(itself, minlength=9)).pvalue < 1e-6


@pytest.mark.parametrize("dtype", [jnp.int32, jnp.float32])
def test_only_ties_are_broken(dtype):
    scores = jnp.asarray([[1, 3, 2, 3], [0, 0, 0, 0], [-5, -7, -9, -8]], dtype)
    order = jnp.asarray([[9, 1, 9, 2], [0, 5, 7, 7], [0, 9, 9, 9]], jnp.int32)
    assert ties.largest(scores, order).tolist() == [3, 2, 0]
    lowest = jnp.full(3, jnp.iinfo(jnp.int32).min if dtype == jnp.int32 else -jnp.inf, dtype)
    assert int(ties.largest(lowest, jnp.asarray([0, 2, 1], jnp.int32))) == 1

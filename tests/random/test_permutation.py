"""Entries of permutations: each value once, all orders equally often, and a wrong one is detected."""

import itertools
import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxdp.random import permutation_entry


def orders(size, count):
    words = jax.random.bits(jax.random.key(size), (count, 2), jnp.uint32)
    every = jax.vmap(lambda pair: jax.vmap(partial(permutation_entry, pair, size=size))(jnp.arange(size)))
    return np.asarray(jax.jit(every)(words))


@pytest.mark.parametrize("size", [1, 488, 5000])
def test_each_value_once(size):
    found = orders(size, 20)
    assert (np.sort(found, axis=1) == np.arange(size)).all()


def p_value(found):
    """Returns the p-value of all orders being equally likely."""
    size = found.shape[1]
    codes = found @ (size ** np.arange(size))
    counts = np.array(
        [np.sum(codes == np.dot(order, size ** np.arange(size))) for order in itertools.permutations(range(size))]
    )
    assert counts.sum() == len(found)
    return stats.chisquare(counts).pvalue


def test_all_orders_are_equally_likely():
    found = orders(5, 120_000)
    assert p_value(found) > 1e-4
    odd = found[:, [1, 0, 2, 3, 4]]
    assert p_value(np.where(np.arange(len(found))[:, None] % 50 == 0, np.sort(odd, axis=1), found)) < 1e-4


def test_places_outside_are_the_nearest():
    words = jnp.array([3, 4], jnp.uint32)
    inside = [int(permutation_entry(words, jnp.int32(place), 6)) for place in (0, 5)]
    assert [int(permutation_entry(words, jnp.int32(place), 6)) for place in (-1, 6)] == inside
    assert math.perm(6) == 720

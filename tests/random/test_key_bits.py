"""Uniform variates from keys' own words."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxdp.random import uniform_from_key

SIZE = 20_000


def raw(key, dtype):
    """Returns the words as they are (planted)."""
    return jax.random.key_data(key)[-1].astype(dtype) / 2.0**32


def draws(function, keys):
    return np.asarray(jax.vmap(lambda key: function(key, jnp.result_type(float)))(keys), np.float64)


def agrees(values):
    """Checks that words and their successors are uniform, and finer digits too."""
    grid = np.floor(values * 16).astype(int)
    pairs = np.bincount(grid[:-1] * 16 + grid[1:], minlength=256)
    fine = np.bincount(np.floor(values * 2**16).astype(int) % 64, minlength=64)
    tests = [
        stats.kstest(values, "uniform").pvalue,
        stats.chisquare(fine).pvalue,
        stats.chisquare(pairs).pvalue,  # overlapping pairs: conservative enough at this level
    ]
    return min(tests) > 1e-6


@pytest.mark.precision
def test_keys_of_rounds():
    keys = jax.vmap(lambda t: jax.random.fold_in(jax.random.key(3), t))(jnp.arange(SIZE))
    values = draws(uniform_from_key, keys)
    assert agrees(values)
    assert (values >= 0).all()
    assert (values < 1).all()
    assert not agrees(values**1.05)


@pytest.mark.precision
def test_keys_of_seeds():
    keys = jax.vmap(jax.random.key)(jnp.arange(SIZE))
    assert agrees(draws(uniform_from_key, keys))
    assert not agrees(draws(raw, keys))


@pytest.mark.precision
@pytest.mark.parametrize("implementation", ["rbg", "threefry2x32"])
def test_either_word_matters(implementation):
    data = np.array(jax.random.key_data(jax.random.key(5, impl=implementation)))
    start = uniform_from_key(jax.random.wrap_key_data(jnp.asarray(data), impl=implementation))
    for word in (-1, -2):
        other = data.copy()
        other[word] ^= 1
        assert uniform_from_key(jax.random.wrap_key_data(jnp.asarray(other), impl=implementation)) != start


@pytest.mark.parametrize("dtype", [jnp.float16, jnp.bfloat16])
def test_short_floats_are_refused(dtype):
    with pytest.raises(ValueError, match=r"dtype must be float32 or float64, got b?float16"):
        uniform_from_key(jax.random.key(0), dtype)

"""One index with given odds: exact frequencies, and never an index of weight zero."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxdp.random import weighted_index

DRAWS = 100_000


def draws(weights, seed=0):
    keys = jax.random.split(jax.random.key(seed), DRAWS)
    return np.asarray(jax.jit(jax.vmap(lambda key: weighted_index(key, weights)))(keys))


def p_value(weights, indices):
    weights = np.asarray(weights, np.float64)
    expected = DRAWS * weights / weights.sum()
    counts = np.bincount(indices, minlength=len(weights))
    assert len(counts) == len(weights)
    likely = expected > 0
    assert counts[~likely].sum() == 0
    return stats.chisquare(counts[likely], expected[likely]).pvalue if likely.sum() > 1 else 1.0


@pytest.mark.parametrize("size", [1, 2, 5, 16, 17, 37, 64, 300])
def test_frequencies(size):
    weights = jnp.asarray(np.random.default_rng(size).exponential(size=size) ** 2, float)
    assert p_value(weights, draws(weights)) > 1e-4


def test_wrong_odds_are_seen():
    weights = jnp.asarray(np.random.default_rng(37).exponential(size=37), float)
    assert p_value(weights.at[20].mul(1.2), draws(weights)) < 1e-4


def test_an_index_of_weight_zero_is_never_drawn():
    weights = np.zeros(37)
    weights[[3, 19, 20]] = [1.0, 2.0, 1e-30]
    assert p_value(jnp.asarray(weights, float), draws(jnp.asarray(weights, float))) > 1e-4
    for only in (0, 15, 16, 36):
        assert (draws(jnp.zeros(37).at[only].set(1e-20)) == only).all()


def test_bad_weights():
    for weights in (jnp.zeros((2, 2)), jnp.zeros(0), jnp.arange(3)):
        with pytest.raises(ValueError, match="weights must be a vector of floats"):
            weighted_index(jax.random.key(0), weights)

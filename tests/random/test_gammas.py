"""Gamma and Beta variates against SciPy's distributions."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from jaxdp.random import beta, gamma, gammas

LANES = 4000
SHAPES = np.array([1.0, 1.05, 2.0, 7.5, 300.0, 1e5])
FIRST = np.array([1.0, 1.0, 1.3, 20.0, 1.0, 5000.0])
SECOND = np.array([1.0, 8.0, 1.1, 3.0, 900.0, 4000.0])
KEYS = functools.cache(lambda: jax.random.split(jax.random.key(5), LANES))
WORST = 5.7e-7 / len(SHAPES)  # the level of 5 standard errors, for all distributions together


def float_array(values):
    return jnp.asarray(values, float)


def agree(drawn, distributions):
    return [
        stats.kstest(column, distribution.cdf, method="asymp").pvalue > WORST
        for column, distribution in zip(np.asarray(drawn).T, distributions, strict=True)
    ]


@pytest.fixture(scope="module")
def variates():
    return np.asarray(jax.jit(jax.vmap(gamma, (0, None)))(KEYS(), float_array(SHAPES)), np.float64)


@pytest.mark.precision
def test_gamma(variates):
    assert all(agree(variates, map(stats.gamma, SHAPES)))
    assert variates.min() > 0


def test_wrong_gammas_are_seen(variates):
    """Plants a scale of 1.2, and a parameter that is a third of a standard deviation too large."""
    assert not any(agree(variates * 1.2, map(stats.gamma, SHAPES)))
    assert not any(agree(variates, map(stats.gamma, SHAPES + np.sqrt(SHAPES) / 3)))


def test_rejection_matters(monkeypatch):
    """Plants a sampler that takes every proposal; the smallest parameter, which refuses most, shows it best."""
    keys, one = jax.random.split(jax.random.key(6), 100_000), float_array([1.0])
    proposals = gammas._proposals

    def accepted(normal, uniform, shape):
        return proposals(normal, jnp.full_like(uniform, jnp.finfo(shape.dtype).tiny), shape)

    def drawn():
        return np.asarray(jax.jit(jax.vmap(lambda key: gamma(key, one)))(keys), np.float64)

    assert all(agree(drawn(), [stats.gamma(1.0)]))
    monkeypatch.setitem(gamma.__globals__, "_proposals", accepted)  # wherever the module was loaded from
    assert not any(agree(drawn(), [stats.gamma(1.0)]))


def check_proposals(draws, shape):
    """Checks that nearly all are accepted, with the mean and variance of the distribution."""
    accepted = draws > 0
    assert accepted.mean() > 0.999
    standard = (draws[accepted].astype(np.float64) - shape) / np.sqrt(shape)
    assert abs(standard.mean()) < 5 / np.sqrt(len(standard))
    assert abs(standard.var() - 1) < 5 * np.sqrt(2 / len(standard))


@pytest.mark.precision
@pytest.mark.parametrize("shape", [900.0, 1100.0, 1e7, 2e9])
def test_large_parameters(shape):
    """Decides on proposals by a small difference of large numbers, which float32 would round away."""
    size = 200_000
    draw = jax.jit(lambda *given: gammas._proposals(*given))
    normal, uniform = jax.random.normal(KEYS()[0], (size,)), jax.random.uniform(KEYS()[1], (size,))
    found = np.asarray(draw(normal, uniform, jnp.full(size, shape)))
    check_proposals(found, shape)
    spread = np.abs(found - shape) > 2.5 * np.sqrt(shape)
    with pytest.raises(AssertionError):  # planted: half of the tails refused
        check_proposals(np.where(spread & (np.arange(size) % 2 == 0), 0, found), shape)


@pytest.mark.precision
def test_beta():
    drawn = jax.jit(jax.vmap(beta, (0, None, None)))(KEYS(), float_array(FIRST), float_array(SECOND))
    assert all(agree(drawn, map(stats.beta, FIRST, SECOND)))
    assert not any(agree(drawn, map(stats.beta, FIRST + np.sqrt(FIRST) / 2, SECOND)))  # planted


def test_variates_of_one_key_are_independent(variates):
    ranks = np.argsort(np.argsort(variates, axis=0), axis=0)
    correlation = np.corrcoef(ranks.T) - np.eye(len(SHAPES))
    assert np.abs(correlation).max() < 5 / np.sqrt(LANES)


def test_parameters_without_a_distribution():
    """Checks that they end and are visible."""
    found = np.asarray(jax.jit(gamma)(KEYS()[0], float_array([np.nan, np.inf, -2.0, 0.9, 3.0])))
    assert np.isnan(found[[0, 2, 3]]).all()
    assert found[1] == np.inf
    assert np.isfinite(found[4])


def test_bad_parameters():
    with pytest.raises(ValueError, match=r"shape must be a vector of floats, got int32 of shape \(2,\)"):
        gamma(KEYS()[0], jnp.ones(2, jnp.int32))
    with pytest.raises(ValueError, match=r"first and second must have the same shape, got \(2,\) and \(3,\)"):
        beta(KEYS()[0], jnp.ones(2), jnp.ones(3))


def test_short_floats_are_refused():
    with pytest.raises(ValueError, match=r"shape must be a vector of floats, got float16 of shape \(2,\)"):
        gamma(KEYS()[0], jnp.ones(2, jnp.float16))

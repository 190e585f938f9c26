"""Normal variates in pairs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import jaxdp
from jaxdp.random import normal
from jaxdp.random._normal import _pair

FLOAT = jax.dtypes.canonicalize_dtype(float)


def drawn(key, size=20, lanes=20_000):
    return np.asarray(jax.jit(jax.vmap(lambda key: normal(key, size)))(jax.random.split(key, lanes)), float)


def p_values(x):
    """Returns p-values: variates are normal, pairs have a uniform direction, and they are independent."""
    half = x.shape[1] // 2
    first, second = x[:, :half].ravel(), x[:, half:].ravel()
    angle = np.arctan2(second, first) / (2 * np.pi) % 1
    square = np.concatenate([np.corrcoef(each.T)[np.triu_indices(2 * half, 1)] for each in (x, x * x)])
    return (
        stats.kstest(x.ravel(), "norm").pvalue,
        stats.kstest(angle, "uniform").pvalue,
        stats.kstest((first**2 + second**2) / 2, "expon").pvalue,
        stats.kstest(square * np.sqrt(len(x)), "norm").pvalue,
    )


@pytest.mark.precision
@pytest.mark.parametrize("make", [jax.random.key, jaxdp.random.key, lambda seed: jax.random.key(seed, impl="rbg")])
def test_they_are_normal_and_independent(make):
    x = drawn(make(1))
    assert x.shape == (20_000, 20)
    assert min(p_values(x)) > 1e-4
    # Wrong ones that this refuses: the second of a pair repeats the first; a quarter of the circle only; 2% too wide.
    assert min(p_values(np.concatenate([x[:, :10], x[:, :10]], axis=1))) < 1e-6
    assert min(p_values(np.abs(x))) < 1e-6
    assert min(p_values(1.02 * x)) < 1e-6


@pytest.mark.precision
def test_both_threefry_keys_give_the_same():
    mine, theirs = normal(jaxdp.random.key(5), 7), normal(jax.random.key(5, impl="threefry2x32"), 7)
    assert mine.dtype == FLOAT
    assert np.allclose(mine, theirs, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("size", [1, 2, 3, 10, 17, 40])
def test_a_batch_is_its_lanes(size):
    keys = jax.random.split(jax.random.key(2), 3)
    single = np.stack([normal(key, size) for key in keys])
    assert np.allclose(jax.vmap(lambda key: normal(key, size))(keys), single, rtol=1e-5, atol=1e-6)


def test_shapes():
    assert normal(jax.random.key(0), ()).shape == ()
    drawn = normal(jax.random.key(0), (3, 2, 4))
    np.testing.assert_array_equal(drawn.ravel(), normal(jax.random.key(0), 24))


def test_every_word_gives_what_it_stands_for():
    """Checks the extreme words, and others by the formula in float64; a wrong quarter would show."""
    ends = np.array([0, 1, 2**31, 2**32 - 1, 2**30, 3 * 2**30, 12345, 2**31 - 1], np.uint32)
    rng = np.random.default_rng(0)
    first = np.concatenate([np.repeat(ends, 8), rng.integers(0, 2**32, 5000, np.uint32)])
    second = np.concatenate([np.tile(ends, 8), rng.integers(0, 2**32, 5000, np.uint32)])
    x, y = (np.asarray(each).astype(float) for each in _pair(jnp.asarray(first), jnp.asarray(second)))
    uniform = np.float32(first >> 1).astype(float) * 2**-31 + 2**-32
    turn = (second << np.uint32(2)).view(np.int32) * 2.0**-31 * np.pi / 4
    quarter = np.where((second >> 30) & 1, np.pi / 2 - turn, turn)
    angle = quarter + np.pi * (second >> 31)
    radius = np.sqrt(-2 * np.log(np.minimum(uniform, 1)))
    assert np.isfinite(x).all()
    assert np.abs(x).max() < 6.7
    assert np.abs(y).max() > 6
    assert np.abs(x - radius * np.cos(angle)).max() < 5e-4  # near 1 a uniform is rounded
    far = radius > 0.1
    assert np.abs(x - radius * np.cos(angle))[far].max() < 5e-6
    assert np.abs(y - radius * np.sin(angle))[far].max() < 5e-6


def test_bad_arguments():
    with pytest.raises(ValueError, match="dtype must be float32 or float64, got int32"):
        normal(jax.random.key(0), 3, jnp.int32)

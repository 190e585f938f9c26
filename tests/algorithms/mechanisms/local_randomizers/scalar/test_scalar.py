"""Tests of `scalar` alone."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.mechanisms import scalar_randomizer
from jaxdp.mechanisms.local_randomizers import scalar

KEY = partial(jax.random.key, 7)
WIDE = jax.config.read("jax_enable_x64")


@pytest.mark.precision
def test_integers_of_64_bits_are_clipped_and_not_wrapped():
    randomizer = scalar_randomizer("rr")
    params = randomizer.params(epsilon=math.inf, low=-1e10, high=1e10)
    values = np.asarray([5 * 10**9, 2**62, -(2**63)], np.int64)
    assert randomizer.report(KEY(), params, values).tolist() == [np.float32(5e9), np.float32(1e10), np.float32(-1e10)]


@pytest.mark.parametrize(("low", "high"), [(0.1, 0.7), (-1e-3, 1e5), (1e7, 1e7 + 2), (-3e-38, 1.0)])
def test_randomized_response_of_the_ends_is_private(low, high, monkeypatch):
    """Checks that the argument of `randomize_scalar` never leaves its bound, however the interval rounds."""
    given = {}
    monkeypatch.setattr(
        scalar, "randomize_scalar", lambda key, v, e, bound: given.update(v=v, bound=bound) or jnp.ones(v.shape, int)
    )
    randomizer = scalar_randomizer()
    params = randomizer.params(epsilon=1.0, low=low, high=high)
    values = jnp.asarray(np.concatenate([np.linspace(low, high, 1001), [math.inf, -math.inf]]), params.low.dtype)
    randomizer.report(KEY(), params, values)
    assert np.all(np.abs(given["v"]) <= given["bound"])


@pytest.mark.skipif(WIDE, reason="the range of float32")
@pytest.mark.parametrize("report", ["rr", "laplace"])
def test_tiny_values_have_noise(report):
    """Checks a noise scale, or half width, below the least normal float: the value was reported as it is."""
    randomizer, keys = scalar_randomizer(report), jax.random.split(KEY(), 1000)
    params = randomizer.params(epsilon=10.0, high=1.5e-38)
    low, high = (
        np.asarray(jax.vmap(lambda key, value=value: randomizer.report(key, params, value))(keys))
        for value in (0.0, 1.5e-38)
    )
    assert np.isfinite([low, high]).all()
    if report == "rr":
        np.testing.assert_array_equal(low, high)  # both ends are 0 as floats
    else:
        assert len(np.unique(high)) > 900
        assert np.mean(high == np.float32(1.5e-38)) < 0.01

"""Short vectors are sorted as NumPy sorts them."""

import jax
import numpy as np
import pytest

from jaxdp.numerics.sorting import sort_values


@pytest.mark.precision
@pytest.mark.parametrize("size", [1, 2, 3, 7, 8, 10, 33])
def test_a_network_sorts_as_numpy_does(size):
    rng = np.random.default_rng(size)
    rows = np.concatenate([rng.normal(size=(200, size)), rng.integers(0, 3, (200, size))]).astype(float)
    rows[0, 0], rows[1] = np.inf, 0.25
    rows = np.asarray(jax.numpy.asarray(rows))
    ordered = np.asarray(jax.jit(jax.vmap(sort_values))(rows))
    assert ordered.dtype == rows.dtype
    np.testing.assert_array_equal(ordered, np.sort(rows))

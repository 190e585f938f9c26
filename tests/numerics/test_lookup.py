"""Entries of tables, and the true flag with a number."""

import jax.numpy as jnp
import pytest

from jaxdp.numerics.lookup import nth_true


@pytest.mark.parametrize("dtype", [jnp.int8, jnp.uint8, jnp.int16, jnp.int32])
def test_narrow_numbers_of_flags(dtype):
    assert nth_true(jnp.ones(300, bool), dtype(5)) == 5
    assert nth_true(jnp.arange(300) % 2 == 1, dtype(100)) == 201
    assert nth_true(jnp.zeros(300, bool), dtype(0)) == 300

"""Eigenvalues across lanes equal NumPy's, and never take one call for many matrices on a CPU."""

import math
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.numerics.eigen import LARGEST_CALL, eigh

DTYPE = jax.dtypes.canonicalize_dtype(float)


def matrices(*lanes, dim):
    drawn = np.random.default_rng(0).normal(size=(*lanes, dim, dim))
    return jnp.asarray(drawn + np.swapaxes(drawn, -1, -2), DTYPE)


def many(lanes):
    function = eigh
    for _ in lanes:
        function = jax.vmap(function)
    return jax.jit(function)


@pytest.mark.parametrize(("lanes", "dim"), [((), 3), ((7,), 1), ((300,), 5), ((6, 35), 9), ((2, 3, 5), 12)])
def test_every_lane_is_as_alone(lanes, dim):
    given = matrices(*lanes, dim=dim)
    values, vectors = many(lanes)(given)
    np.testing.assert_allclose(values, np.linalg.eigvalsh(np.asarray(given, float)), rtol=0, atol=1e-4)
    again = np.asarray(vectors) * np.asarray(values)[..., None, :] @ np.swapaxes(np.asarray(vectors), -1, -2)
    np.testing.assert_allclose(again, given, rtol=0, atol=1e-4)


def test_none_and_nothing():
    assert jax.vmap(eigh)(jnp.zeros((0, 3, 3), DTYPE)).values.shape == (0, 3)
    assert jax.vmap(eigh)(jnp.zeros((4, 0, 0), DTYPE)).vectors.shape == (4, 0, 0)


def test_derivatives():
    given = matrices(3, dim=4)

    def length(find):
        def function(matrix):
            values, vectors = find((matrix + matrix.T) / 2)
            return jnp.sum(values**3) + jnp.sum(jnp.square(vectors[:, 0]) * jnp.arange(4, dtype=DTYPE))

        return function

    for derivative in (jax.grad, jax.jacfwd, jax.jacrev):
        found, expected = (jax.vmap(derivative(length(find)))(given) for find in (eigh, jnp.linalg.eigh))
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-3)


def largest_call(function, given):
    """Returns the entries cubed of the largest LAPACK call, by the shapes in the compiled program."""
    if jax.default_backend() != "cpu":
        pytest.skip("other devices have no such calls")
    text = jax.jit(function).lower(given).as_text()
    found = re.findall(r"lapack_[sd]syevd_ffi\(.*?\) .*?: \(tensor<((?:\d+x)+)f\d+>", text)
    shapes = [[int(size) for size in shape.split("x")[:-1]] for shape in found]
    assert shapes
    return max(math.prod(shape) * shape[-1] for shape in shapes)


@pytest.mark.parametrize(("lanes", "dim"), [((4096,), 5), ((256,), 8), ((64, 64), 6), ((10,), 40)])
def test_no_call_is_for_many(lanes, dim):
    given = matrices(*lanes, dim=dim)
    assert largest_call(many(lanes), given) <= max(LARGEST_CALL, dim**3)
    assert largest_call(jnp.linalg.eigh, given) > max(LARGEST_CALL, dim**3)  # as it is without

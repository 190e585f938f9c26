"""Factors and solves across lanes equal LAPACK's."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import scipy.linalg

from jaxdp.numerics.small_linear_algebra import (
    FEW,
    MAX_UNROLLED,
    cholesky,
    cholesky_solve,
    solve_lower,
    solve_upper,
    square_triangle,
    symmetric_matrix,
    triangle,
    triangle_product,
)

DTYPE = jax.dtypes.canonicalize_dtype(float)
TOLERANCE = 5e-5 if np.float32 == DTYPE else 1e-12
SHAPES = [((), 1), ((3,), 2), ((2, 3), FEW), ((4,), MAX_UNROLLED + 1)]


def positive(*lanes, dim):
    drawn = np.random.default_rng(0).normal(size=(*lanes, dim, dim))
    return (drawn @ np.swapaxes(drawn, -1, -2) / dim + np.eye(dim)).astype(DTYPE)


def drawn(*shape):
    return np.random.default_rng(1).normal(size=shape).astype(DTYPE)


def many(function, lanes):
    for _ in lanes:
        function = jax.vmap(function)
    return jax.jit(function)


def check(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize(("lanes", "dim"), SHAPES)
def test_factors_are_those_of_lapack(lanes, dim):
    given = positive(*lanes, dim=dim)
    found = many(cholesky, lanes)(np.tril(given) + np.triu(np.full_like(given, np.nan), 1))
    assert found.dtype == DTYPE
    check(found, np.linalg.cholesky(given.astype(float)))


@pytest.mark.parametrize(("lanes", "dim"), SHAPES)
@pytest.mark.parametrize("count", [None, 3])
def test_solutions_are_those_of_lapack(lanes, dim, count):
    lower = np.linalg.cholesky(positive(*lanes, dim=dim))
    rhs = drawn(*lanes, dim) if count is None else drawn(*lanes, dim, count)
    given = lower + np.triu(np.full_like(lower, np.nan), 1)

    def solved(transposed):
        solve = np.vectorize(
            lambda a, b: scipy.linalg.solve_triangular(a, b, trans=int(transposed), lower=True),
            signature="(n,n),(n)->(n)" if count is None else "(n,n),(n,k)->(n,k)",
        )
        return solve(lower.astype(float), rhs.astype(float))

    check(many(solve_lower, lanes)(given, rhs), solved(False))
    check(many(solve_upper, lanes)(given, rhs), solved(True))
    columns = rhs[..., None] if count is None else rhs
    both = np.linalg.solve(lower.astype(float) @ np.swapaxes(lower, -1, -2).astype(float), columns.astype(float))
    check(many(cholesky_solve, lanes)(given, rhs), both[..., 0] if count is None else both)


def test_a_shared_factor_and_many_right_hand_sides():
    lower, rhs = np.linalg.cholesky(positive(dim=4)), drawn(6, 4)
    found = jax.vmap(cholesky_solve, in_axes=(None, 0))(jnp.asarray(lower), jnp.asarray(rhs))
    check(found, np.linalg.solve((lower @ lower.T).astype(float), rhs.T.astype(float)).T)


@pytest.mark.parametrize("dim", [2, MAX_UNROLLED + 1])
def test_what_is_not_positive_definite_is_nan(dim):
    matrix = np.eye(dim, dtype=DTYPE)
    matrix[1, 1] = -1
    assert np.isnan(cholesky(jnp.asarray(matrix))).any()


def test_no_call_of_lapack():
    def solved(matrix, vector):
        return cholesky_solve(cholesky(matrix), vector)

    text = jax.jit(jax.vmap(solved)).lower(positive(7, dim=3), drawn(7, 3)).compile().as_text()
    assert "custom-call" not in str(text)
    planted = jax.jit(jax.vmap(jnp.linalg.cholesky)).lower(positive(7, dim=3)).compile().as_text()
    assert "custom-call" in str(planted)


@pytest.mark.parametrize("dim", [1, 2, 5])
def test_one_triangle_tells_a_symmetric_matrix(dim):
    half = np.arange(dim * dim, dtype=np.float32).reshape(dim, dim)
    matrix = jnp.asarray(half + half.T)
    entries = triangle(matrix)
    assert entries.shape == (dim * (dim + 1) // 2,)
    np.testing.assert_array_equal(symmetric_matrix(entries, dim), matrix)
    assert dim == 1 or not np.array_equal(symmetric_matrix(entries[::-1], dim), matrix)  # planted: another order


@pytest.mark.parametrize("dim", [1, 5, MAX_UNROLLED + 1])
def test_products_with_one_triangle(dim):
    x, z, matrix = jnp.asarray(drawn(7, dim)), jnp.asarray(drawn(7, dim)), positive(7, dim=dim)
    check(jax.vmap(square_triangle)(x), (x[:, :, None] * x[:, None, :])[:, *np.triu_indices(dim)])
    check(jax.vmap(triangle_product)(jax.vmap(triangle)(matrix), z), np.einsum("nij,nj->ni", matrix, z))

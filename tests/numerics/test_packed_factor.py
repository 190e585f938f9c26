"""One triangle of a matrix, factored across lanes: as by the plain forms, and LAPACK."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jaxdp.numerics.packed_factor import (
    factor_and_solve,
    factor_and_solve_plain,
    inverse_norms,
    inverse_norms_plain,
    log_det,
    lower_factor,
)
from jaxdp.numerics.small_linear_algebra import FEW, MAX_UNROLLED

DTYPE = jax.dtypes.canonicalize_dtype(float)
TOLERANCE = 5e-5 if np.float32 == DTYPE else 1e-12
LANES, COUNT = 4, 3


def given(dim):
    """Makes matrices [LANES, dim, dim], right-hand sides [LANES, dim], vectors [LANES, COUNT, dim]."""
    draw = np.random.default_rng(dim)
    half = draw.normal(size=(LANES, dim, dim))
    matrix = half @ np.swapaxes(half, -1, -2) / dim + np.eye(dim)
    return matrix.astype(DTYPE), draw.normal(size=(LANES, dim)).astype(DTYPE), draw.normal(size=(LANES, COUNT, dim))


def check(found, expected):
    np.testing.assert_allclose(found, expected, rtol=0, atol=TOLERANCE)


def check_all(factor, measure, dim):
    matrix, rhs, vectors = given(dim)
    entries = matrix[:, *np.triu_indices(dim)]
    columns, solution = jax.jit(jax.vmap(factor))(entries, rhs)
    exact = matrix.astype(float)
    check(jax.vmap(lambda columns: lower_factor(columns, dim))(columns), np.linalg.cholesky(exact))
    check(solution, np.linalg.solve(exact, rhs[..., None].astype(float))[..., 0])
    check(jax.vmap(lambda columns: log_det(columns, dim))(columns), np.linalg.slogdet(exact)[1])
    squares = np.einsum("nki,nij,nkj->nk", vectors, np.linalg.inv(exact), vectors)
    check(jax.jit(jax.vmap(measure))(columns, vectors.astype(DTYPE)), np.sqrt(squares))


@pytest.mark.parametrize("dim", [1, 2, FEW + 1, MAX_UNROLLED + 1])
def test_factor_solution_and_lengths_are_those_of_lapack(dim):
    check_all(factor_and_solve, inverse_norms, dim)
    check_all(factor_and_solve_plain, inverse_norms_plain, dim)


@pytest.mark.parametrize("dim", [2, FEW + 1])
def test_wrong_forms_are_found(dim):
    """Plants columns in another order, and vectors with entries solved for in reverse."""

    def other_order(entries, rhs):
        columns, solution = factor_and_solve(entries, rhs)
        return columns[::-1], solution

    with pytest.raises(AssertionError):
        check_all(other_order, inverse_norms, dim)
    with pytest.raises(AssertionError):
        check_all(factor_and_solve, lambda columns, vectors: inverse_norms(columns, vectors[:, ::-1]), dim)


@pytest.mark.parametrize("dim", [2, FEW, MAX_UNROLLED + 1])
@pytest.mark.parametrize("place", [0, -1])
def test_what_is_not_positive_definite_ends_in_no_positive_number(dim, place):
    matrix = np.eye(dim, dtype=DTYPE)
    for bad in (-1.0, 0.0):
        matrix[place, place] = bad
        columns, _ = jax.jit(factor_and_solve)(matrix[np.triu_indices(dim)], jnp.ones(dim, DTYPE))
        assert not columns[-1] > 0


def test_no_call_of_lapack():
    matrix, rhs, _ = given(3)
    text = jax.jit(jax.vmap(factor_and_solve)).lower(matrix[:, *np.triu_indices(3)], rhs).compile().as_text()
    assert "custom-call" not in str(text)

"""Factors a symmetric matrix that is stored as a triangle, and solves equations with it, across lanes.

The steps are the same as for square matrices in `small_linear_algebra`. Here every step reads rows or columns that are
contiguous in memory; parts of a square matrix would be copied first.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.numerics.kernels import across_lanes
from jaxdp.numerics.small_linear_algebra import (
    MAX_UNROLLED,
    Step,
    call_in_steps,
    cholesky,
    cholesky_solve,
    concatenate,
    scale_column,
    solve_lower,
    subtract_columns,
    symmetric_matrix,
)


def factor_and_solve(entries: jax.Array, rhs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the Cholesky factor L of a symmetric matrix V, and V^-1 rhs.

    Args:
        entries: [dim (dim + 1) / 2] float, the `triangle` of V, which is positive definite.
        rhs: [dim] float.

    Returns:
        The columns of L from the diagonal down, one after the other, [dim (dim + 1) / 2] float; and V^-1 rhs, [dim]
        float. If V is not positive definite, the last entry of L is NaN in most cases, and never > 0.

    Examples:
        >>> columns, solution = factor_and_solve(jnp.array([4.0, 2.0, 5.0]), jnp.array([2.0, 5.0]))
        >>> print(columns, solution)
        [2. 1. 2.] [0. 1.]
    """
    if len(rhs) > MAX_UNROLLED:
        return factor_and_solve_plain(entries, rhs)
    return across_lanes(_factor_columns)((entries, rhs))


def factor_and_solve_plain(entries: jax.Array, rhs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the result of `factor_and_solve`, computed with a square matrix."""
    lower = cholesky(symmetric_matrix(entries, len(rhs)))
    return lower.T[np.triu_indices(len(rhs))], cholesky_solve(lower, rhs)


def _factor_columns(inputs: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array]:
    """Factors column by column. rhs is an additional row of V, which becomes the solution y of L y = rhs."""

    def by_columns(step: Step, inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
        dim, columns = len(inputs[1]), []
        for j in range(dim):
            left = step(partial(_remainder, j))(*inputs, *columns)
            columns.append(step(scale_column)(left))
        unknowns: list[jax.Array] = []  # the last entry first
        for i in reversed(range(dim)):
            unknowns.append(step(_solve_column)(columns[i], *unknowns))
        return step(_concatenate_columns)(jnp.stack(unknowns[::-1]), *columns)

    dim = len(inputs[1])
    both = call_in_steps(by_columns, inputs, dim)
    return both[:-dim], both[-dim:]


def _remainder(j: int, entries: jax.Array, rhs: jax.Array, *before: jax.Array) -> jax.Array:
    """Returns column j of V and, below it, entry j of rhs, after the subtraction of all earlier columns."""
    dim = len(rhs)
    start = _diagonal(dim)[j]
    return subtract_columns(concatenate(entries[start : start + dim - j], rhs[j : j + 1]), *before)


def _concatenate_columns(last: jax.Array, *columns: jax.Array) -> jax.Array:
    """Concatenates the factor's columns and `last`; the last entry of each column belongs to rhs and is left out."""
    return concatenate(*(column[:-1] for column in columns), last)


def _solve_column(column: jax.Array, *unknowns: jax.Array) -> jax.Array:
    """Solves an equation for its first unknown: `column` has the coefficients and, last, the right-hand side."""
    remainder = column[-1]
    for factor, value in zip(column[:0:-1][1:], unknowns, strict=True):
        remainder = remainder - factor * value
    return remainder / column[0]


def inverse_norms(columns: jax.Array, vectors: jax.Array) -> jax.Array:
    """Returns the norms |x|_V^-1 = sqrt(x^T V^-1 x) of vectors x.

    Args:
        columns: [dim (dim + 1) / 2] float, columns of V's factor, from `factor_and_solve`.
        vectors: [count, dim] float.

    Returns:
        [count] float.

    Examples:
        >>> print(inverse_norms(jnp.array([2.0, 1.0, 2.0]), jnp.eye(2)).round(3))
        [0.559 0.5  ]
    """
    if vectors.shape[1] > MAX_UNROLLED:
        return inverse_norms_plain(columns, vectors)
    return across_lanes(_inverse_norms)((columns, vectors))


def inverse_norms_plain(columns: jax.Array, vectors: jax.Array) -> jax.Array:
    """Returns the result of `inverse_norms`, computed with a square factor."""
    solutions = solve_lower(lower_factor(columns, vectors.shape[1]), vectors.T)
    return jnp.sqrt(jnp.sum(solutions * solutions, axis=0))


def _inverse_norms(inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
    def by_rows(step: Step, inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
        columns, vectors = inputs
        entries: list[jax.Array] = []
        for i in range(vectors.shape[1]):
            entries.append(step(partial(_solve_row, i))(columns, vectors, *entries))
        return step(_norm)(*entries)

    return call_in_steps(by_rows, inputs, inputs[1].shape[1])


def _solve_row(i: int, columns: jax.Array, vectors: jax.Array, *entries: jax.Array) -> jax.Array:
    """Returns entry i of L^-1 x for each vector x, from the entries before i."""
    starts = _diagonal(vectors.shape[1])
    remainder = vectors[:, i]
    for k, value in enumerate(entries):
        index = starts[k] + i - k
        remainder = remainder - columns[index : index + 1] * value
    return remainder / columns[starts[i] : starts[i] + 1]


def _norm(*parts: jax.Array) -> jax.Array:
    total = parts[0] * parts[0]
    for part in parts[1:]:
        total = total + part * part
    return jnp.sqrt(total)


def lower_factor(columns: jax.Array, dim: int) -> jax.Array:
    """Returns the lower triangular matrix [dim, dim] with these columns [dim (dim + 1) / 2] from the diagonal down."""
    column, row = np.triu_indices(dim)
    return jnp.zeros((dim, dim), columns.dtype).at[row, column].set(columns)


def log_det(columns: jax.Array, dim: int) -> jax.Array:
    """Returns the log determinant of V, [] float, from the columns of `factor_and_solve`."""
    return 2 * jnp.sum(jnp.log(columns[np.asarray(_diagonal(dim))]))


def _diagonal(dim: int) -> list[int]:
    """Returns the index of the first entry of each column."""
    return [j * dim - j * (j - 1) // 2 for j in range(dim)]

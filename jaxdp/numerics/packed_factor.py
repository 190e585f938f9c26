"""Factors symmetric matrices that are stored as triangles, and solves equations with them, across lanes.

The steps are the same as for square matrices in `small_linear_algebra`. In a triangle, every step reads rows or columns
that are contiguous in memory; the same parts of a square matrix would be copied first.
"""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.numerics.kernels import across_lanes, lanes_slow, noinline
from jaxdp.numerics.platforms import by_platform
from jaxdp.numerics.small_linear_algebra import (
    FEW,
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

BLOCK = 8  # lanes of a block in `inverse_norms`, the number of float32 in a vector of 256 bits


def factor_and_solve(entries: jax.Array, rhs: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the Cholesky factor L of a symmetric matrix V, and V^-1 rhs.

    Args:
        entries: [dim (dim + 1) / 2] float, the `triangle` of V, which is positive definite.
        rhs: [dim] float.

    Returns:
        The concatenated columns of L from the diagonal down, [dim (dim + 1) / 2] float; and V^-1 rhs, [dim] float. If V
        is not positive definite, the last entry of L is NaN in most cases, and never > 0 except by rounding.

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
    """Factors column by column. In the process, rhs, an additional row of V, becomes the solution y of L y = rhs."""

    def by_columns(step: Step, inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
        dim, columns = len(inputs[1]), []
        for j in range(dim):
            left = step(partial(_remainder, j))(*inputs, *columns)
            columns.append(step(scale_column)(left))
        unknowns: list[jax.Array] = []  # the last entry first
        for i in reversed(range(dim)):
            unknowns.append(step(_solve_column)(columns[i], *unknowns))
        return step(partial(_join_columns, dim))(concatenate(*columns, jnp.stack(unknowns[::-1])))

    dim = len(inputs[1])
    both = call_in_steps(by_columns, inputs, dim)
    return both[:-dim], both[-dim:]


def _remainder(j: int, entries: jax.Array, rhs: jax.Array, *before: jax.Array) -> jax.Array:
    """Returns column j of V with entry j of rhs below the column, after subtraction of all earlier columns."""
    dim = len(rhs)
    start = _diagonal(dim)[j]
    return subtract_columns(concatenate(entries[start : start + dim - j], rhs[j : j + 1]), *before)


def _join_columns(dim: int, columns: jax.Array) -> jax.Array:
    """Removes the last entry of each column, which belongs to rhs, and keeps the entries after the columns."""
    ends = np.cumsum(np.arange(dim + 1, 1, -1)) - 1
    return columns[np.delete(np.arange(len(columns)), ends)]


def _solve_column(column: jax.Array, *unknowns: jax.Array) -> jax.Array:
    """Solves an equation for its first unknown. `column` contains the coefficients, and then the right-hand side."""
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
    columns, vectors = inputs
    if vectors.shape[1] < FEW:
        return _norms_at_once(columns, vectors)
    return by_platform(columns, vectors, cpu=_norms_in_blocks, default=_norms_at_once)


def _norms_at_once(columns: jax.Array, vectors: jax.Array) -> jax.Array:
    return _norms(columns, _diagonal_inverses(columns, vectors.shape[1]), vectors)


def _diagonal_inverses(columns: jax.Array, dim: int) -> jax.Array:
    return 1 / columns[np.asarray(_diagonal(dim))]


def _norms_in_blocks(columns: jax.Array, vectors: jax.Array) -> jax.Array:
    """Computes norms in one kernel, which finishes all vectors of a few lanes before it starts the next lanes."""
    # The factor of these lanes stays in the nearest cache, and the entries of a solution stay in registers. Kernels of
    # single rows would read all earlier entries from a slower cache.
    lanes = columns.shape[-1]
    blocks = -(-lanes // BLOCK)

    def split(array: jax.Array) -> jax.Array:
        padded = jnp.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, blocks * BLOCK - lanes)])
        return padded.reshape(*array.shape[:-1], blocks, BLOCK)

    def kernel(columns: jax.Array, inverses: jax.Array, vectors: jax.Array) -> jax.Array:
        return lanes_slow(jnp.swapaxes(_norms(columns, inverses, vectors), 0, 1))  # [blocks, count, BLOCK]

    inverses = noinline(partial(_diagonal_inverses, dim=vectors.shape[1]))(columns)
    norms = noinline(kernel)(*map(split, (columns, inverses, vectors)))
    return jnp.swapaxes(norms, 0, 1).reshape(len(vectors), -1)[:, :lanes]


def _norms(columns: jax.Array, inverses: jax.Array, vectors: jax.Array) -> jax.Array:
    """Returns the norms |L^-1 x| of vectors [count, dim, *lanes], given the inverses [dim, *lanes] of L's diagonal."""
    starts, entries = _diagonal(vectors.shape[1]), []
    for i in range(vectors.shape[1]):
        remainder = vectors[:, i]
        for k, value in enumerate(entries):
            remainder = remainder - columns[starts[k] + i - k][None] * value
        entries.append(remainder * inverses[i][None])
    total = entries[0] * entries[0]
    for entry in entries[1:]:
        total = total + entry * entry
    return jnp.sqrt(total)


def lower_factor(columns: jax.Array, dim: int) -> jax.Array:
    """Returns the [dim, dim] lower triangular matrix from its packed columns, `columns` [dim (dim + 1) / 2]."""
    column, row = np.triu_indices(dim)
    return jnp.zeros((dim, dim), columns.dtype).at[row, column].set(columns)


def log_det(columns: jax.Array, dim: int) -> jax.Array:
    """Returns the log determinant of V ([] float) from the columns of `factor_and_solve`."""
    return 2 * jnp.sum(jnp.log(columns[np.asarray(_diagonal(dim))]))


def _diagonal(dim: int) -> list[int]:
    """Returns the index of the first entry of each column."""
    return [j * dim - j * (j - 1) // 2 for j in range(dim)]

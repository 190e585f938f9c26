"""Factors small symmetric matrices, and solves equations with them, in any number of lanes.

Functions take the arrays of one lane. Under `jax.vmap` they process all lanes at a time, with lanes as the fast axis.
They never loop over lanes, and they do not call LAPACK, because many calls can deadlock on a CPU (see `eigen`). For at
most `MAX_UNROLLED` dimensions the steps are unrolled; otherwise a loop performs each step for all lanes.

A step of unrolled code computes a row or a column. For `FEW` or more dimensions, steps are separate kernels on a CPU.
Otherwise XLA would recompute each step in every later step, which is five times slower at 20 dimensions.
"""

import operator
from collections.abc import Callable
from functools import partial
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.numerics.kernels import across_lanes, noinline, own_kernel, pairwise_reduce
from jaxdp.numerics.platforms import by_platform

MAX_UNROLLED = 32  # maximum number of dimensions with unrolled steps
FEW = 6  # with fewer steps, it is cheap to recompute them
AnyArray = TypeVar("AnyArray", jax.Array, np.ndarray)


def cholesky(matrix: jax.Array) -> jax.Array:
    """Returns the Cholesky factor L, which is lower triangular with a positive diagonal and L L^T = matrix.

    Args:
        matrix: [dim, dim] float, positive definite; entries above the diagonal are not read.

    Returns:
        [dim, dim] float. If the matrix, up to rounding, is not positive definite, some entries are NaN.

    Examples:
        >>> print(cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
        [[2. 0.]
         [1. 2.]]
    """
    return across_lanes(_cholesky if len(matrix) <= MAX_UNROLLED else _cholesky_in_steps)(matrix)


Step = Callable[[Callable[..., jax.Array]], Callable[..., jax.Array]]


def call_in_steps(function: Callable[[Step, Any], jax.Array], inputs: Any, dim: int) -> jax.Array:
    """Returns function(step, inputs). On a CPU, step(f) is f as a separate kernel if dim >= FEW; otherwise it is f."""

    def plain(inputs: Any) -> jax.Array:
        return function(lambda kernel: kernel, inputs)

    if dim < FEW:
        return plain(inputs)
    return by_platform(inputs, cpu=partial(function, noinline), default=plain)


def _cholesky(matrix: jax.Array) -> jax.Array:
    """Factors column by column. As in all functions that `across_lanes` calls, arrays have an additional lane axis."""

    def by_columns(step: Step, matrix: jax.Array) -> jax.Array:
        columns, rows = [], []
        for j in range(len(matrix)):
            left = step(subtract_columns)(matrix[j:, j], *columns)
            columns.append(step(scale_column)(left))
            rows += [jnp.zeros_like(matrix[0, :j]), columns[j]]
        return jnp.swapaxes(step(concatenate)(*rows).reshape(matrix.shape), 0, 1)

    return call_in_steps(by_columns, matrix, len(matrix))


def concatenate(*parts: jax.Array) -> jax.Array:
    """Concatenates arrays along the first axis."""
    return jnp.concatenate(parts)


def subtract_columns(column: jax.Array, *before: jax.Array) -> jax.Array:
    """Subtracts products of the factor's earlier columns from a column of the matrix, from the diagonal down.

    Each earlier column is multiplied by its entry in the row of the diagonal entry.
    """
    for longer in before:
        other = longer[-len(column) :]
        column = column - other * other[:1]
    return column


def scale_column(column: jax.Array) -> jax.Array:
    """Returns a column of the factor from the result of `subtract_columns`."""
    return column / jnp.sqrt(column[:1])


def _cholesky_in_steps(matrix: jax.Array) -> jax.Array:
    indices = jnp.arange(len(matrix))
    rows = indices[:, None]

    def step(j, lower):
        """Finishes column j: scales it, and subtracts the outer product of column j with itself from later columns."""
        column = jnp.where(rows >= j, lower[:, j] / jnp.sqrt(lower[j, j])[None], 0)
        remainder = lower - column[:, None] * jnp.where(rows > j, column, 0)[None, :]
        return remainder.at[:, j].set(column)

    lower = jax.lax.fori_loop(0, len(matrix), step, jnp.where((rows >= indices[None])[..., None], matrix, 0))
    return jnp.where((rows >= indices[None])[..., None], lower, 0)


def solve_lower(lower: jax.Array, rhs: jax.Array) -> jax.Array:
    """Solves lower x = rhs for x.

    Args:
        lower: [dim, dim] float; entries above the diagonal are not read.
        rhs: [dim] float, or [dim, count] float for several right-hand sides.

    Returns:
        A float array with the shape of rhs.

    Examples:
        >>> print(solve_lower(jnp.array([[2.0, 0.0], [1.0, 2.0]]), jnp.array([2.0, 5.0])))
        [1. 2.]
    """
    return across_lanes(_solve_lower)((lower, rhs))


def solve_upper(lower: jax.Array, rhs: jax.Array) -> jax.Array:
    """Solves lower^T x = rhs for x; see `solve_lower` for arguments and result.

    Examples:
        >>> print(solve_upper(jnp.array([[2.0, 0.0], [1.0, 2.0]]), jnp.array([4.0, 4.0])))
        [1. 2.]
    """
    return across_lanes(_solve_upper)((lower, rhs))


def cholesky_solve(lower: jax.Array, rhs: jax.Array) -> jax.Array:
    """Solves lower lower^T x = rhs for x; see `solve_lower` for arguments and result."""
    return solve_upper(lower, solve_lower(lower, rhs))


def _solve_lower(inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
    lower, rhs = inputs
    if len(lower) > MAX_UNROLLED:
        return _solve_in_steps(lower, rhs, backwards=False)

    def by_rows(step: Step, inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
        lower, rhs = inputs
        unknowns: list[jax.Array] = []
        for i in range(len(lower)):
            unknowns.append(step(eliminate)(rhs[i], lower[i, : i + 1], *unknowns))
        return jnp.stack(unknowns)

    return call_in_steps(by_rows, inputs, len(lower))


def eliminate(remainder: jax.Array, coefficients: jax.Array, *unknowns: jax.Array) -> jax.Array:
    """Solves an equation for its last unknown, given the right-hand side, the coefficients and the earlier unknowns."""
    if remainder.ndim == 2:
        coefficients = coefficients[:, None]
    for coefficient, value in zip(coefficients, unknowns, strict=False):
        remainder = remainder - coefficient * value
    return remainder / coefficients[len(unknowns)]


def _solve_upper(inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
    lower, rhs = inputs
    if len(lower) > MAX_UNROLLED:
        return _solve_in_steps(jnp.swapaxes(lower, 0, 1), rhs, backwards=True)

    def by_columns(step: Step, inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
        lower, rhs = inputs
        unknowns: list[jax.Array] = []  # the last entry first
        for i in reversed(range(len(lower))):
            unknowns.append(step(eliminate)(rhs[i], lower[i:, i][::-1], *unknowns))
        return jnp.stack(unknowns[::-1])

    return call_in_steps(by_columns, inputs, len(lower))


def _solve_in_steps(triangle: jax.Array, rhs: jax.Array, backwards: bool) -> jax.Array:
    """Solves for the entries in sequence, and substitutes each entry in all remaining equations."""
    dim = len(triangle)
    if rhs.ndim == 3:
        triangle = triangle[:, :, None]
    rows = jnp.arange(dim).reshape(dim, *(1,) * (rhs.ndim - 1))

    def step(count, unknowns):
        i = dim - 1 - count if backwards else count
        value = unknowns[i] / triangle[i, i]
        to_come = rows < i if backwards else rows > i
        return jnp.where(to_come, unknowns - triangle[:, i] * value[None], unknowns).at[i].set(value)

    return jax.lax.fori_loop(0, dim, step, rhs)


def triangle(matrix: AnyArray) -> AnyArray:
    """Returns the upper triangle of a symmetric matrix [d, d], row by row, as [d (d + 1) / 2] entries."""
    return matrix[np.triu_indices(len(matrix))]


def symmetric_matrix(entries: AnyArray, dim: int) -> AnyArray:
    """Returns the [dim, dim] symmetric matrix from the result of `triangle`, [dim (dim + 1) / 2]."""
    rows, columns = np.triu_indices(dim)
    index = np.zeros((dim, dim), np.int32)
    index[rows, columns] = index[columns, rows] = np.arange(len(rows))
    return entries[index]


def square_triangle(vector: jax.Array) -> jax.Array:
    """Returns the `triangle` of the outer product of a vector [d] and itself."""
    return across_lanes(lambda vector: own_kernel(_squares, vector))(vector)


def _squares(vector: jax.Array) -> jax.Array:
    rows, columns = np.triu_indices(len(vector))
    return vector[rows] * vector[columns]


def triangle_product(entries: jax.Array, vector: jax.Array) -> jax.Array:
    """Multiplies a symmetric matrix, given as a `triangle` [d (d + 1) / 2], by a vector [d]."""
    if len(vector) > MAX_UNROLLED:
        return jnp.sum(symmetric_matrix(entries, len(vector)) * vector[None], axis=1)
    return across_lanes(_triangle_product)((entries, vector))


def _triangle_product(inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
    entries, vector = inputs
    dim = len(vector)
    index = symmetric_matrix(np.arange(len(entries)), dim)  # [i, j]: position of entry (i, j) in the triangle

    def all_rows(entries: jax.Array, vector: jax.Array) -> jax.Array:
        return pairwise_reduce(operator.add, [entries[index[:, j]] * vector[j : j + 1] for j in range(dim)])

    return own_kernel(all_rows, entries, vector)

"""Factors of small symmetric matrices and what is solved with them, in as many lanes as there are.

Each function is written for one lane and takes all lanes of `jax.vmap` at once, as the fast axis: no loop runs inside a
lane, and no LAPACK call, many of which wait for each other forever on a CPU (see `eigen`). Up to `WRITTEN_OUT`
dimensions the steps are written out; beyond, they are steps of a loop.
"""

import jax
import jax.numpy as jnp

from jaxdp.kernels import across_lanes

WRITTEN_OUT = 32  # dimensions


def cholesky(matrix: jax.Array) -> jax.Array:
    """The lower triangular L with a positive diagonal and L L^T = matrix.

    >>> print(cholesky(jnp.array([[4.0, 2.0], [2.0, 5.0]])))
    [[2. 0.]
     [1. 2.]]

    Args:
        matrix: [dim, dim] float, positive definite; what is above its diagonal is not read.

    Returns:
        [dim, dim] float. Where the matrix is not positive definite, some of it is NaN.
    """
    return across_lanes(_cholesky if len(matrix) <= WRITTEN_OUT else _cholesky_in_steps)(matrix)


def _cholesky(matrix: jax.Array) -> jax.Array:
    """Column by column; of [dim, dim, lanes], as are all that follow."""
    dim, columns = len(matrix), []
    for j in range(dim):
        column = matrix[j:, j]
        for k, before in enumerate(columns):
            column = column - before[j - k :] * before[j - k][None]
        columns.append(column / jnp.sqrt(column[:1]))
    padded = [jnp.pad(column, ((dim - len(column), 0), (0, 0))) for column in columns]
    return jnp.stack(padded, axis=1) if columns else matrix


def _cholesky_in_steps(matrix: jax.Array) -> jax.Array:
    places = jnp.arange(len(matrix))
    rows = places[:, None]

    def step(j, lower):
        """Columns before j are done, and have been taken off the others."""
        column = jnp.where(rows >= j, lower[:, j] / jnp.sqrt(lower[j, j])[None], 0)
        rest = lower - column[:, None] * jnp.where(rows > j, column, 0)[None, :]
        return rest.at[:, j].set(column)

    lower = jax.lax.fori_loop(0, len(matrix), step, jnp.where((rows >= places[None])[..., None], matrix, 0))
    return jnp.where((rows >= places[None])[..., None], lower, 0)


def solve_lower(lower: jax.Array, rhs: jax.Array) -> jax.Array:
    """The x with lower x = rhs.

    >>> print(solve_lower(jnp.array([[2.0, 0.0], [1.0, 2.0]]), jnp.array([2.0, 5.0])))
    [1. 2.]

    Args:
        lower: [dim, dim] float, what is above its diagonal is not read.
        rhs: [dim] or [dim, count] float, one right-hand side or several.

    Returns:
        A float array of the shape of rhs.
    """
    return across_lanes(_solve_lower)((lower, rhs))


def solve_upper(lower: jax.Array, rhs: jax.Array) -> jax.Array:
    """The x with lower^T x = rhs; arguments and result are as those of `solve_lower`.

    >>> print(solve_upper(jnp.array([[2.0, 0.0], [1.0, 2.0]]), jnp.array([4.0, 4.0])))
    [1. 2.]
    """
    return across_lanes(_solve_upper)((lower, rhs))


def cholesky_solve(lower: jax.Array, rhs: jax.Array) -> jax.Array:
    """The x with lower lower^T x = rhs; arguments and result are as those of `solve_lower`."""
    return solve_upper(lower, solve_lower(lower, rhs))


def _entry(lower: jax.Array, i: int, j: int, like: jax.Array) -> jax.Array:
    """[lanes], with an axis for right-hand sides if there is one."""
    return lower[i, j] if like.ndim == 2 else lower[i, j][None]


def _solve_lower(inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
    lower, rhs = inputs
    if len(lower) > WRITTEN_OUT:
        return _in_steps(lower, rhs, backwards=False)
    found: list[jax.Array] = []
    for i in range(len(lower)):
        rest = rhs[i]
        for j, value in enumerate(found):
            rest = rest - _entry(lower, i, j, rhs) * value
        found.append(rest / _entry(lower, i, i, rhs))
    return jnp.stack(found) if found else rhs


def _solve_upper(inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
    lower, rhs = inputs
    dim = len(lower)
    if dim > WRITTEN_OUT:
        return _in_steps(jnp.swapaxes(lower, 0, 1), rhs, backwards=True)
    found: list[jax.Array] = []  # the last entry first
    for i in reversed(range(dim)):
        rest = rhs[i]
        for j, value in zip(reversed(range(dim)), found, strict=False):
            rest = rest - _entry(lower, j, i, rhs) * value
        found.append(rest / _entry(lower, i, i, rhs))
    return jnp.stack(found[::-1]) if found else rhs


def _in_steps(triangle: jax.Array, rhs: jax.Array, backwards: bool) -> jax.Array:
    """Solves for one entry after the other, and takes it off all equations to come."""
    dim = len(triangle)
    if rhs.ndim == 3:
        triangle = triangle[:, :, None]
    rows = jnp.arange(dim).reshape(dim, *(1,) * (rhs.ndim - 1))

    def step(count, found):
        i = dim - 1 - count if backwards else count
        value = found[i] / triangle[i, i]
        to_come = rows < i if backwards else rows > i
        return jnp.where(to_come, found - triangle[:, i] * value[None], found).at[i].set(value)

    return jax.lax.fori_loop(0, dim, step, rhs)


def rank_one_update(lower: jax.Array, vector: jax.Array) -> jax.Array:
    """The Cholesky factor of lower lower^T + vector vector^T.

    >>> print(rank_one_update(jnp.array([[3.0, 0.0], [0.0, 1.0]]), jnp.array([4.0, 0.0])))
    [[5. 0.]
     [0. 1.]]

    Args:
        lower: [dim, dim] float, a factor as `cholesky` makes it.
        vector: [dim] float.

    Returns:
        [dim, dim] float.
    """
    return across_lanes(_rank_one if len(lower) <= WRITTEN_OUT else _rank_one_in_steps)((lower, vector))


def _rank_one(inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
    lower, vector = inputs
    dim, columns = len(lower), []
    for j in range(dim):
        column, vector = _rotated(lower[j:, j], vector)
        columns.append(jnp.pad(column, ((j, 0), (0, 0))))
        vector = vector[1:]
    return jnp.stack(columns, axis=1) if columns else lower


def _rotated(column: jax.Array, vector: jax.Array, at: int | jax.Array = 0) -> tuple[jax.Array, jax.Array]:
    """Both turned in their common plane, such that the vector's entry there is 0."""
    length = jnp.sqrt(column[at] ** 2 + vector[at] ** 2)
    cosine, sine = (column[at] / length)[None], (vector[at] / length)[None]
    return cosine * column + sine * vector, cosine * vector - sine * column


def _rank_one_in_steps(inputs: tuple[jax.Array, jax.Array]) -> jax.Array:
    lower, vector = inputs

    def step(j, state):
        lower, vector = state
        column, vector = _rotated(lower[:, j], vector, j)
        return lower.at[:, j].set(column), vector.at[j].set(0)

    return jax.lax.fori_loop(0, len(lower), step, (lower, vector))[0]


def log_det(lower: jax.Array) -> jax.Array:
    """The logarithm, [] float, of the determinant of lower lower^T, for a factor as `cholesky` makes it."""
    return 2 * jnp.sum(jnp.log(jnp.diagonal(lower)))

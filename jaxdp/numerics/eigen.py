"""Computes eigenvalues and eigenvectors of small symmetric matrices in any number of lanes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.numerics.platforms import by_platform
from jaxdp.numerics.private_jax import custom_vmap

LARGEST_CALL = 2**14  # maximum count * dim^3 of a call with several matrices: 131 matrices of 5 x 5, or 16 of 10 x 10


class Eigen(NamedTuple):
    """The decomposition vectors @ diag(values) @ vectors^T of a symmetric matrix.

    Attributes:
        values: [dim] float, increasing.
        vectors: [dim, dim] float, orthonormal columns.
    """

    values: jax.Array
    vectors: jax.Array


def eigh(matrix: jax.Array) -> Eigen:
    """Returns the eigenvalues and eigenvectors of a symmetric matrix, as `jnp.linalg.eigh` does.

    The matrix is [dim, dim] float. On a CPU, each call of LAPACK under `jax.vmap` gets few matrices. In JAX 0.10, a
    call with many matrices distributes them over a thread pool, and waits for them in the same pool. If two programs
    run at the same time, as in a sweep, this can deadlock with about 100 lanes of 10 dimensions or more.

    Derivatives assume distinct eigenvalues. If some eigenvalues are equal, derivatives of eigenvectors are not finite.
    """
    return Eigen(*_decompose_one(matrix))


@jax.custom_jvp
def _decompose_one(matrix: jax.Array) -> tuple[jax.Array, jax.Array]:
    values, vectors = _decompose_many(matrix[None])
    return values[0], vectors[0]


@_decompose_one.defjvp
def _tangents(primals: tuple[jax.Array], tangents: tuple[jax.Array]):
    values, vectors = _decompose_one(*primals)
    (change,) = tangents
    inside = vectors.T @ ((change + change.T) / 2) @ vectors
    same = jnp.eye(len(values), dtype=bool)
    gaps = jnp.where(same, 1, values[None, :] - values[:, None])
    turns = jnp.where(same, 0, inside) / gaps
    return (values, vectors), (jnp.diagonal(inside), vectors @ turns)


@custom_vmap
def _decompose_many(matrices: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Decomposes matrices ([count, dim, dim]) in one call."""
    decomposition = jnp.linalg.eigh(matrices)
    return decomposition.eigenvalues, decomposition.eigenvectors


@_decompose_many.def_vmap
def _decompose_lanes(num_lanes: int, batched: list[bool], matrices: jax.Array):
    del batched  # the only argument has lanes
    return by_platform(matrices, cpu=_decompose_in_groups, default=_decompose_together), (True, True)


def _decompose_together(matrices: jax.Array) -> tuple[jax.Array, jax.Array]:
    lanes, count, dim, _ = matrices.shape
    values, vectors = _decompose_many(matrices.reshape(lanes * count, dim, dim))
    return values.reshape(lanes, count, dim), vectors.reshape(matrices.shape)


def _decompose_in_groups(matrices: jax.Array) -> tuple[jax.Array, jax.Array]:
    lanes, count, dim, _ = matrices.shape
    if matrices.size == 0:
        return _decompose_together(matrices)
    fits = max(1, LARGEST_CALL // (count * dim**3))
    together = max(size for size in range(1, min(lanes, fits) + 1) if lanes % size == 0)
    if together == lanes:
        return _decompose_together(matrices)
    values, vectors = jax.lax.map(_decompose_many, matrices.reshape(lanes // together, together * count, dim, dim))
    return values.reshape(lanes, count, dim), vectors.reshape(matrices.shape)

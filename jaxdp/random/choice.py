"""One index, with given odds."""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from jaxdp.kernels import own_kernel
from jaxdp.random.threefry import fast

COLUMNS = 16  # about the square root of the usual number of weights, and as many as a vector unit adds at once


def weighted_index(key: jax.Array, weights: ArrayLike) -> jax.Array:
    """Draws index i with probability weights[i] / sum(weights), from one uniform variate.

    `jax.random.categorical` needs a variate for every weight. Here more than 16 weights are a matrix of 16 columns:
    first its column is drawn, then the row, which is several times faster on CPU than a cumulative sum.

    >>> import jax, jax.numpy as jnp
    >>> int(weighted_index(jax.random.key(0), jnp.array([0.0, 0.0, 3.0, 0.0], jnp.float32)))
    2

    Args:
        key: [] typed PRNG key.
        weights: [n] float32 or float64 >= 0, finite, not all zero; may be traced.

    Returns:
        [] int32 in [0, n): never one of weight zero, as long as weights are as above; else meaningless.

    Raises:
        ValueError: if weights are not a vector of at least one float.

    Source: inversion, Devroye (1986), chapter III.2.
    Deviations: probabilities are multiples of 2^-23 in float32 (2^-52 in float64), up to the rounding of sums.
    """
    weights = jnp.asarray(weights)
    if weights.ndim != 1 or len(weights) == 0 or not jnp.issubdtype(weights.dtype, jnp.floating):
        raise ValueError(f"weights must be a vector of floats, got {weights.dtype} of shape {weights.shape}")
    return _draw(fast(key), weights)


def index_at(uniform: jax.Array, weights: jax.Array) -> jax.Array:
    """The index with odds `weights` that a uniform variate stands for: what `weighted_index` makes of its own.

    >>> [int(index_at(jnp.float32(u), jnp.array([1.0, 3.0], jnp.float32))) for u in (0.2, 0.3)]
    [0, 1]

    Args:
        uniform: [] float32 or float64 in [0, 1).
        weights: [n] of the same dtype, as for `weighted_index`.

    Returns:
        [] int32 in [0, n), as for `weighted_index`.
    """
    return own_kernel(inline_index_at, uniform, weights)


def inline_index_at(uniform: jax.Array, weights: jax.Array | Sequence[jax.Array]) -> jax.Array:
    """`index_at` for use within a kernel of its own, where weights need not be stored; at most 16 also one by one."""
    size = len(weights)
    if isinstance(weights, jax.Array) and size > COLUMNS:
        matrix = jnp.pad(weights, (0, -size % COLUMNS)).reshape(-1, COLUMNS)
        sums = matrix.sum(0)
    else:
        matrix, sums = None, weights
    last = list(sums)
    for index in range(1, len(last)):
        last[index] = last[index - 1] + sums[index]  # written out: a loop of tiny steps would cost more
    threshold = uniform * last[-1]  # below it, as rounding is monotone
    passed = [threshold >= bound for bound in last[:-1]]
    column = sum((bound.astype(jnp.int32) for bound in passed), jnp.int32(0))
    if matrix is None:
        return jnp.asarray(column)
    so_far = sum(jnp.where(bound, value, 0) for bound, value in zip(passed, sums[:-1], strict=True))
    candidates = matrix[:, column]
    row, found = jnp.int32(0), jnp.asarray(False)
    for index in range(len(matrix)):
        so_far = so_far + candidates[index]
        found = found | (threshold < so_far)
        row = row + (~found).astype(jnp.int32)
    # Rounding can leave the column's own sum a little below the one drawn from.
    row = jnp.where(found, row, jnp.argmax(candidates).astype(jnp.int32))
    return jnp.asarray(row * COLUMNS + column)


@partial(jax.jit, inline=True)  # compiled once for eager calls
def _draw(key: jax.Array, weights: jax.Array) -> jax.Array:
    return index_at(jax.random.uniform(key, dtype=weights.dtype), weights)

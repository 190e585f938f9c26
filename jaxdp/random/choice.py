"""Draws an index with probabilities proportional to given weights."""

import functools
import operator
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jax.typing import ArrayLike

from jaxdp.numerics.fixed_point import in_64_bits
from jaxdp.numerics.kernels import lanes_last, lanes_last_if_many, own_kernel
from jaxdp.random.threefry import fast_key, word_pairs, words_of_pairs
from jaxdp.validation import refuse_private

LARGEST_UNROLLED = 1024  # for more weights, the size of the program does not depend on their number
COLUMNS = 16  # about the square root of the usual number of weights; a vector unit adds 16 numbers at a time


def weighted_index(key: jax.Array, weights: ArrayLike) -> jax.Array:
    """Draws index i with probability weights[i] / sum(weights), from one uniform variate.

    `jax.random.categorical` needs a variate for every weight. This function arranges more than 16 weights as a matrix
    with 16 columns, and draws first the column and then the row in this column. On CPU this is several times faster
    than a cumulative sum. For more than 1,024 weights, the size of the program does not depend on the number of
    weights.

    Args:
        key: [] typed PRNG key.
        weights: [n] float32 or float64 >= 0; at least one is > 0 and not subnormal, and their sum is at most half of
            the largest number of their dtype. May be traced.

    Returns:
        [] int32 in [0, n), never an index with weight zero. The result is unspecified if traced weights break these
        rules.

    Raises:
        ValueError: if weights are not a vector of at least one float; or, for weights that are not traced, if an entry,
            the largest entry or the sum is out of range.

    Source:
        Inversion, Devroye (1986), chapter III.2.

    Deviations:
        Probabilities are multiples of 2^-23 in float32 (2^-52 in float64), up to the rounding of sums. If private data
        determine the weights, use `fine_index`.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> int(weighted_index(jax.random.key(0), jnp.array([0.0, 0.0, 3.0, 0.0], jnp.float32)))
        2
    """
    return _draw(fast_key(key), _check_weights(weights))


def fine_index(key: jax.Array, weights: ArrayLike) -> jax.Array:
    """Draws index i with probability weights[i] / sum(weights), from 53 random bits and float64 sums.

    Use this function if private data determine the weights, because an index that a float32 variate can never give
    would distinguish neighbours. The precision is the same in 32-bit mode.

    Args:
        key: [] typed PRNG key. For a Threefry key, the first 23 of the 53 bits are the bits that `weighted_index`
            uses for float32 weights.
        weights: [n] float32 or float64 >= 0; see `weighted_index`. The sum is in float64.

    Returns:
        [] int32 in [0, n); see `weighted_index`. An index of probability below about 2^-52 may never be drawn.

    Raises:
        ValueError: see `weighted_index`.

    Source:
        See `weighted_index`.

    Deviations:
        Probabilities are multiples of 2^-53, up to the rounding of sums in float64.

    Examples:
        >>> import jax, jax.numpy as jnp
        >>> int(fine_index(jax.random.key(0), jnp.array([0.0, 0.0, 3.0, 0.0], jnp.float32)))
        2
    """
    return _draw_finely(fast_key(key), _check_weights(weights, np.float64))


def index_from_uniform(uniform: jax.Array, weights: jax.Array) -> jax.Array:
    """Returns the index that `weighted_index` draws with a given uniform variate.

    Args:
        uniform: [] float32 or float64 in [0, 1).
        weights: [n] of the same dtype; see `weighted_index`.

    Returns:
        [] int32 in [0, n); see `weighted_index`.

    Examples:
        >>> [int(index_from_uniform(jnp.float32(u), jnp.array([1.0, 3.0], jnp.float32))) for u in (0.2, 0.3)]
        [0, 1]
    """
    return _index(lambda uniform: uniform, uniform, weights)


def fine_entry(key: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Draws an entry of a matrix, with probabilities proportional to the entries, from 53 random bits.

    For at most 16 rows and columns, this is faster on CPU than `fine_index`. For the same key, the two functions may
    draw different entries.

    Args:
        key: see `fine_index`.
        weights: [rows, columns] float32 or float64 >= 0, finite, not all zero.

    Returns:
        The row and the column, each [] int32.
    """
    if max(weights.shape) > COLUMNS:
        index = fine_index(key, weights.ravel())
        return index // weights.shape[1], index % weights.shape[1]
    return _draw_entry(fast_key(key), weights)


def _index(as_uniform: Callable[[jax.Array], jax.Array], source: jax.Array, weights: jax.Array) -> jax.Array:
    """Returns the index that the variate `as_uniform(source)` draws. Each kernel computes the variate itself."""
    if len(weights) > LARGEST_UNROLLED:
        uniform = as_uniform(source)
        return _index_of_very_many(uniform, weights.astype(uniform.dtype))
    if len(weights) > COLUMNS:
        return _index_of_many(as_uniform, source, weights)

    def inside(source: jax.Array, weights: jax.Array) -> jax.Array:
        uniform = as_uniform(lanes_last(source))
        return inline_index_at(uniform, list(lanes_last(weights).astype(uniform.dtype)))

    return own_kernel(inside, source, lanes_last(weights))


def _check_weights(weights: ArrayLike, dtype_of_sum: Any = None) -> jax.Array:
    weights = jnp.asarray(weights)
    if weights.ndim != 1 or len(weights) == 0 or not jnp.issubdtype(weights.dtype, jnp.floating):
        raise ValueError(f"weights must be a vector of floats, got {weights.dtype} of shape {weights.shape}")
    if not isinstance(weights, Tracer):
        values, dtype = np.asarray(weights, np.float64), jnp.finfo(dtype_of_sum or weights.dtype)
        refuse_private("weights", "numbers >= 0", ~(values >= 0))
        smallest, largest = float(jnp.finfo(weights.dtype).tiny), float(dtype.max) / 2
        if values.max() < smallest:
            raise ValueError(f"weights must have an entry >= {smallest:.3g}, got only smaller ones")
        with np.errstate(over="ignore"):
            if values.sum() > largest:
                raise ValueError(f"weights must have a sum <= {largest:.3g} in {dtype.dtype}, got a larger one")
    return weights


def _index_of_very_many(uniform: jax.Array, weights: jax.Array) -> jax.Array:
    """Returns the index that a uniform variate draws, by a program with the same size for any number of weights."""
    size, remainder = len(weights), len(weights) % COLUMNS
    sums = weights[: size - remainder].reshape(-1, COLUMNS).sum(0)
    sums = _compute_once(sums.at[:remainder].add(weights[size - remainder :]) if remainder else sums)
    column, threshold, so_far = _compute_once(_column(uniform, sums))
    candidates = _compute_once(_weights_of_column(weights, column))
    return _row_by_groups(threshold, so_far, candidates) * COLUMNS + column


def _row_by_groups(threshold: jax.Array, so_far: jax.Array | int, candidates: jax.Array) -> jax.Array:
    """Returns the first row at which `so_far` plus the sum of the candidates up to this row exceeds the threshold.

    It first finds one of 16 groups of rows, and then the row in the group.
    """
    if len(candidates) <= LARGEST_UNROLLED // COLUMNS:
        return _row(threshold, so_far, candidates)
    groups = jnp.pad(candidates, (0, -len(candidates) % COLUMNS)).reshape(COLUMNS, -1)
    sums = _compute_once(groups.sum(1))
    bounds = [so_far + sums[0]]
    for index in range(1, COLUMNS):
        bounds.append(bounds[-1] + sums[index])
    is_passed = [threshold >= bound for bound in bounds]
    sum_before = functools.reduce(
        jnp.maximum, (jnp.where(*pair, so_far) for pair in zip(is_passed, bounds, strict=True))
    )
    group = sum((bound.astype(jnp.int32) for bound in is_passed), jnp.int32(0))
    # Due to rounding, the sum of all groups can be slightly below the threshold. Then any nonempty group is valid.
    group = jnp.where(is_passed[-1], _index_of_largest(sums), group)
    group, sum_before = _compute_once((group, sum_before))
    return _row_by_groups(threshold, sum_before, _compute_once(groups[group])) + group * groups.shape[1]


def _compute_once(values: Any) -> Any:
    """Asks XLA to store the values. XLA on CPU may still recompute them at each use (see `noinline`)."""
    return jax.lax.optimization_barrier(values)


def _weights_of_column(weights: jax.Array, column: jax.Array) -> jax.Array:
    """Returns every 16th weight, starting at index `column`, and 0 beyond the last weight."""
    size = len(weights)
    index = jnp.arange(0, size, COLUMNS, dtype=jnp.int32) + column
    column_weights = weights.at[jnp.minimum(index, size - 1)].get(mode="promise_in_bounds")
    return jnp.where(index < size, column_weights, 0)


def _index_of_many(as_uniform: Callable[[jax.Array], jax.Array], source: jax.Array, weights: jax.Array) -> jax.Array:
    """Returns the index that `as_uniform(source)` draws, with kernels for column sums, the column, and the row."""
    size, dtype = len(weights), jax.eval_shape(as_uniform, source).dtype

    def add_rows(weights):
        rows = [weights[start : start + COLUMNS].astype(dtype) for start in range(0, size - COLUMNS + 1, COLUMNS)]
        return functools.reduce(operator.add, rows)

    def find_column(source, sums):
        return _column(as_uniform(source), sums)

    def kernel(function: Callable[..., jax.Array], *inputs: jax.Array) -> jax.Array:
        def inside(*inputs: jax.Array) -> jax.Array:
            return lanes_last_if_many(function(*map(lanes_last_if_many, inputs)))

        return lanes_last_if_many(own_kernel(inside, *map(lanes_last_if_many, inputs)))

    remainder = size % COLUMNS
    sums = kernel(add_rows, weights)
    if remainder:
        sums = kernel(lambda sums, weights: sums.at[:remainder].add(weights[-remainder:].astype(dtype)), sums, weights)
    column = kernel(lambda *inputs: find_column(*inputs)[0], source, sums)

    candidates = kernel(_weights_of_column, weights, column)
    row = kernel(lambda *inputs: _row(*find_column(*inputs[:2])[1:], inputs[2].astype(dtype)), source, sums, candidates)
    return row * COLUMNS + column


def inline_index_at(uniform: jax.Array, weights: jax.Array | Sequence[jax.Array]) -> jax.Array:
    """Returns the index that a uniform variate in [0, 1) draws. Use it inside a kernel.

    At most 16 weights may also be given as a sequence of scalars.
    """
    size = len(weights)
    if isinstance(weights, jax.Array) and size > LARGEST_UNROLLED:
        return _index_of_very_many(uniform, weights)
    if isinstance(weights, jax.Array) and size > COLUMNS:
        matrix = jnp.pad(weights, (0, -size % COLUMNS)).reshape(-1, COLUMNS)
        sums = matrix.sum(0)
    else:
        matrix, sums = None, weights
    column, threshold, so_far = _column(uniform, sums)
    if matrix is None:
        return column
    return _row(threshold, so_far, matrix[:, column]) * COLUMNS + column


def _column(uniform: jax.Array, sums: jax.Array | Sequence[jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array | int]:
    """Returns the column that a uniform variate draws, the threshold for the row, and the sum of previous columns.

    `sums` has the sum of weights of each column.
    """
    bounds = list(sums)
    for index in range(1, len(bounds)):
        bounds[index] = bounds[index - 1] + sums[index]  # unrolled, as a loop of tiny steps would be slower
    threshold = uniform * bounds[-1]  # strictly below the last bound, as rounding is monotone
    is_passed = [threshold >= bound for bound in bounds[:-1]]
    column = sum((bound.astype(jnp.int32) for bound in is_passed), jnp.int32(0))
    so_far = sum(jnp.where(bound, value, 0) for bound, value in zip(is_passed, sums[:-1], strict=True))
    return jnp.asarray(column), threshold, so_far


def _row(threshold: jax.Array, so_far: jax.Array | int, candidates: jax.Array) -> jax.Array:
    """Returns the first row at which `so_far` plus the sum of the candidates up to this row exceeds the threshold."""
    row, is_found = jnp.int32(0), jnp.asarray(False)
    for index in range(len(candidates)):
        so_far = so_far + candidates[index]
        is_found = is_found | (threshold < so_far)
        row = row + (~is_found).astype(jnp.int32)
    # Due to rounding, the sum of candidates can be slightly below the column sum with which the column was drawn.
    return jnp.where(is_found, row, _index_of_largest(candidates))


def _index_of_largest(values: jax.Array) -> jax.Array:
    largest, best = values[0], jnp.int32(0)  # unrolled, as XLA on CPU computes an argmax in a slow loop
    for index in range(1, len(values)):
        larger = values[index] > largest
        largest, best = jnp.where(larger, values[index], largest), jnp.where(larger, jnp.int32(index), best)
    return best


@partial(jax.jit, inline=True)  # compiled once for eager calls
def _draw(key: jax.Array, weights: jax.Array) -> jax.Array:
    return index_from_uniform(jax.random.uniform(key, dtype=weights.dtype), weights)


@partial(jax.jit, inline=True)
@in_64_bits
def _draw_finely(key: jax.Array, weights: jax.Array) -> jax.Array:
    return _index(_fine_uniform, word_pairs(key, 1), weights)


def _fine_uniform(pairs: jax.Array) -> jax.Array:
    """Returns a uniform variate ([] float64) with 53 bits from `word_pairs` ([1])."""
    high, low = (word[0] for word in words_of_pairs(pairs))
    word = (high ^ low).astype(jnp.float64) * 2**21 + (low >> np.uint32(11)).astype(jnp.float64)
    return word * 2.0**-53


@partial(jax.jit, inline=True)
@in_64_bits
def _draw_entry(key: jax.Array, weights: jax.Array) -> tuple[jax.Array, jax.Array]:
    def kernel(function: Callable[..., jax.Array], *inputs: jax.Array) -> jax.Array:
        return lanes_last(own_kernel(lambda *inputs: lanes_last(function(*map(lanes_last, inputs))), *inputs))

    def add_rows(weights: jax.Array) -> jax.Array:
        return functools.reduce(operator.add, list(weights.astype(jnp.float64)))

    def find_column(pairs: jax.Array, sums: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array | int]:
        return _column(_fine_uniform(pairs), list(sums))

    def candidates_of(weights: jax.Array, column: jax.Array) -> jax.Array:
        return functools.reduce(
            operator.add, [jnp.where(column == index, weights[:, index], 0) for index in range(weights.shape[1])]
        )

    pairs = word_pairs(key, 1)
    sums = kernel(add_rows, weights)
    column = kernel(lambda *inputs: find_column(*inputs)[0], pairs, sums)
    candidates = kernel(candidates_of, weights, column)
    row = kernel(
        lambda pairs, sums, candidates: _row(*find_column(pairs, sums)[1:], candidates.astype(jnp.float64)),
        pairs,
        sums,
        candidates,
    )
    return row, column

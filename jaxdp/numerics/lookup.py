"""Reads table entries at indices that may lie outside the table, where JAX's indexing would return some entry."""

import functools
import operator

import jax
import jax.numpy as jnp


def entry(table: jax.Array, *indices: jax.Array) -> jax.Array:
    """Returns table[indices], or NaN if an index is negative or too large.

    Args:
        table: [sizes..., ...] float.
        indices: [] integers of any type, one for each of the leading axes.

    Returns:
        [...] float of the table's dtype.
    """
    wider = [widen_index(index) for index in indices]
    # Negative indices are large unsigned integers, so one comparison checks both ends.
    inside = functools.reduce(
        operator.and_,
        (
            index.astype(f"uint{8 * index.dtype.itemsize}") < size
            for index, size in zip(wider, table.shape, strict=False)
        ),
    )
    hole = jnp.full((1, *table.shape[len(indices) :]), jnp.nan, table.dtype)
    if hole.ndim > 1:  # avoids a copy of a large table's rows
        return jnp.where(inside, nearest_entry(table, *indices), hole[0])
    position = jnp.where(
        inside, _flat_index(wider, table.shape), table.size
    )  # NaN is appended as an entry, which avoids a select over the table
    return jnp.append(table.ravel(), hole).at[position].get(mode="promise_in_bounds", wrap_negative_indices=False)


def nearest_entry(table: jax.Array, *indices: jax.Array) -> jax.Array:
    """Returns the table's entry at these indices, after clipping the indices to the table."""
    clipped = [jnp.clip(widen_index(index), 0, size - 1) for index, size in zip(indices, table.shape, strict=False)]
    flat = table.reshape(-1, *table.shape[len(indices) :])  # a single index is faster
    return flat.at[_flat_index(clipped, table.shape)].get(mode="promise_in_bounds", wrap_negative_indices=False)


def nth_true(flags: jax.Array, number: jax.Array) -> jax.Array:
    """Returns the index of the true flag that has `number` true flags before it; n if there is no such flag.

    XLA on CPU sorts slowly, so this is much faster than an entry of `jnp.argsort(~flags, stable=True)`.

    Args:
        flags: [n] bool.
        number: [] integer, >= 0; of a 64-bit dtype if n >= 2^31.

    Returns:
        [] int32.
    """
    number = widen_index(number)
    return jnp.sum(jnp.cumsum(flags, dtype=number.dtype) <= number, dtype=jnp.int32)


def widen_index(index: jax.Array) -> jax.Array:
    """Converts an index to at least 32 bits, so that it can be compared with the sizes of tables."""
    index = jnp.asarray(index)
    return index if index.dtype.itemsize >= 4 else index.astype(jnp.int32)


def _flat_index(indices: list[jax.Array], sizes: tuple[int, ...]) -> jax.Array:
    """Returns the index in a flattened table."""
    # Indices are converted to int32 only here. Indices outside the table may overflow, and `entry` ignores the result.
    position, *rest = (index.astype(jnp.int32) for index in indices)
    for index, size in zip(rest, sizes[1:], strict=False):
        position = position * size + index
    return position

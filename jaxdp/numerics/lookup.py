"""Entries of tables by indices that may lie outside. JAX's own indexing would answer with some entry of the table."""

import functools
import operator

import jax
import jax.numpy as jnp


def entry(table: jax.Array, *indices: jax.Array) -> jax.Array:
    """table[indices], or NaN where an index is not of the table; negative ones are not.

    Args:
        table: [sizes..., ...] float.
        indices: [] integers of any type, one for each of the leading axes.

    Returns:
        [...] float of the table's type.
    """
    wider = [wide(index) for index in indices]
    # As unsigned integers negative indices are large ones: a single comparison for both ends.
    inside = functools.reduce(
        operator.and_,
        (
            index.astype(f"uint{8 * index.dtype.itemsize}") < size
            for index, size in zip(wider, table.shape, strict=False)
        ),
    )
    hole = jnp.full((1, *table.shape[len(indices) :]), jnp.nan, table.dtype)
    if hole.ndim > 1:  # rows of a large table are not to be copied
        return jnp.where(inside, nearest(table, *indices), hole[0])
    place = jnp.where(inside, _place(wider, table.shape), table.size)  # the hole is one entry more: no select by table
    return jnp.append(table.ravel(), hole).at[place].get(mode="promise_in_bounds", wrap_negative_indices=False)


def nearest(table: jax.Array, *indices: jax.Array) -> jax.Array:
    """As `entry`, but an index outside is taken for the nearest one inside."""
    clipped = [jnp.clip(wide(index), 0, size - 1) for index, size in zip(indices, table.shape, strict=False)]
    flat = table.reshape(-1, *table.shape[len(indices) :])  # a single index is faster
    return flat.at[_place(clipped, table.shape)].get(mode="promise_in_bounds", wrap_negative_indices=False)


def wide(index: jax.Array) -> jax.Array:
    """Integers of 32 bits at least, with which sizes of tables can be compared."""
    index = jnp.asarray(index)
    return index if index.dtype.itemsize >= 4 else index.astype(jnp.int32)


def _place(indices: list[jax.Array], sizes: tuple[int, ...]) -> jax.Array:
    """The place in a flattened table."""
    # Indices of wider types become int32 only here, where they are of the table: it may not hold their other values.
    place, *rest = (index.astype(jnp.int32) for index in indices)
    for index, size in zip(rest, sizes[1:], strict=False):
        place = place * size + index
    return place

"""Entries of tables by indices that may lie outside. JAX's own indexing would answer with some entry of the table."""

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
    inside = [(index >= 0) & (index < size) for index, size in zip(map(wide, indices), table.shape, strict=False)]
    found = nearest(table, *indices)
    for each in inside:
        found = jnp.where(each, found, jnp.asarray(jnp.nan, found.dtype))
    return found


def nearest(table: jax.Array, *indices: jax.Array) -> jax.Array:
    """As `entry`, but an index outside is taken for the nearest one inside."""
    # Clipped before wider types, and after shorter ones, become int32: either may not hold the other's values.
    clipped = [
        jnp.clip(wide(index), 0, size - 1).astype(jnp.int32) for index, size in zip(indices, table.shape, strict=False)
    ]
    place = clipped[0]
    for index, size in zip(clipped[1:], table.shape[1 : len(indices)], strict=True):
        place = place * size + index
    flat = table.reshape(-1, *table.shape[len(indices) :])  # a single index is faster
    return flat.at[place].get(mode="promise_in_bounds", wrap_negative_indices=False)


def wide(index: jax.Array) -> jax.Array:
    """Integers of 32 bits at least, with which sizes of tables can be compared."""
    index = jnp.asarray(index)
    return index if index.dtype.itemsize >= 4 else index.astype(jnp.int32)

"""Keys of lanes, for callers who map over lanes themselves."""

import jax
import jax.numpy as jnp

from jaxdp.random import fast_key
from jaxdp.validation import check_count, check_key


def check_root(key: jax.Array) -> jax.Array:
    """Returns key, if lanes can be made of it.

    Raises:
        ValueError: if it is not a typed key, or not of a Threefry implementation.
    """
    if "rbg" in str(jax.random.key_impl(check_key(key))):
        raise ValueError(
            f"key must be of a Threefry implementation, got {jax.random.key_impl(key)}, whose numbers for one lane "
            "depend on the lanes beside it"
        )
    return key


def lane_keys(key: jax.Array, n: int) -> jax.Array:
    """Returns the keys that seeds 0, 1, ..., n - 1 of a sweep have at every grid point.

    Args:
        key: the sweep's, a typed PRNG key of a Threefry implementation.
        n: the number of keys, >= 1.

    Returns:
        [n] typed keys, fold_in(key, i) for each i, of `jaxdp.random`'s implementation. It draws the same random numbers
        as JAX's own Threefry, faster. The keys' type, `key<jaxdp_threefry2x32>`, differs from JAX's own: one array
        cannot hold keys of both.

    Raises:
        ValueError: if key is not a typed Threefry key, or n < 1.

    Examples:
        >>> import jax, jaxdp
        >>> key = jax.random.key(0)
        >>> keys = jaxdp.lane_keys(key, 3)
        >>> bool((jax.random.key_data(keys[2]) == jax.random.key_data(jax.random.fold_in(key, 2))).all())
        True
    """
    check_root(key)
    seeds = jnp.arange(check_count("n", n), dtype=jnp.uint32)
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(fast_key(key), seeds)

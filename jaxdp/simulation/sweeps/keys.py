"""Derives the keys of lanes, for users who map over lanes themselves."""

import jax
import jax.numpy as jnp

from jaxdp.random import fast_key
from jaxdp.validation import check_count, check_key


def check_root(key: jax.Array) -> jax.Array:
    """Returns `key`, after checking that it is a typed key of a Threefry implementation."""
    if "rbg" in str(jax.random.key_impl(check_key(key))):
        raise ValueError(
            f"key must be of a Threefry implementation, got {jax.random.key_impl(key)}: its random numbers in one lane "
            "depend on other lanes of the batch"
        )
    return key


def lane_keys(key: jax.Array, n: int) -> jax.Array:
    """Returns the keys of seeds 0, 1, ..., n - 1 of a sweep, which are the same at every grid point.

    Args:
        key: the key of the sweep, a typed PRNG key of a Threefry implementation.
        n: number of keys, >= 1.

    Returns:
        [n] typed keys, fold_in(key, i) for each i, of the implementation in `jaxdp.random`. This implementation draws
        the same random numbers as JAX's Threefry, but faster. The type of the keys is `key<jaxdp_threefry2x32>`, so you
        cannot put them into one array with keys of JAX's type.

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

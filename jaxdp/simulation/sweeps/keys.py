"""Keys of lanes, for those who map over them by themselves."""

import jax
import jax.numpy as jnp

from jaxdp.random import fast
from jaxdp.validation import check_count, check_key


def check_root(key: jax.Array) -> jax.Array:
    """Returns key, if lanes can be made of it.

    Raises:
        ValueError: if it is no typed key, or of an implementation other than Threefry.
    """
    if "rbg" in str(jax.random.key_impl(check_key(key))):
        raise ValueError(
            f"key must be of a Threefry implementation, got {jax.random.key_impl(key)}, whose numbers for one lane "
            "depend on the lanes beside it"
        )
    return key


def lane_keys(key: jax.Array, n: int) -> jax.Array:
    """The keys that seeds 0, 1, ..., n - 1 of a sweep have at every grid point.

    Args:
        key: the sweep's, a typed PRNG key of a Threefry implementation.
        n: how many, >= 1.

    Returns:
        [n] typed keys, fold_in(key, i) for each i, of `jaxdp.random`'s implementation: the same random numbers as
        JAX's own Threefry, faster. Their type, `key<jaxdp_threefry2x32>`, is another one than JAX's own: the two cannot
        stand in one array.

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
    return jax.vmap(jax.random.fold_in, in_axes=(None, 0))(fast(key), seeds)

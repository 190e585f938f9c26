"""Poisson counts for keys of this package."""

from collections.abc import Sequence

import jax
from jax.sharding import NamedSharding, PartitionSpec
from jax.typing import ArrayLike, DTypeLike

from jaxdp.random.threefry import builtin


def poisson(
    key: jax.Array,
    lam: ArrayLike,
    shape: Sequence[int] | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: NamedSharding | PartitionSpec | None = None,
) -> jax.Array:
    """Draws Poisson counts: `jax.random.poisson`, which refuses keys that are not of JAX's own Threefry.

    In a sweep every key is one of this package's, so there too this function is the one to call.

    Args:
        key: [] typed PRNG key, of `jaxdp.random.key` or JAX's built-in Threefry.
        lam: [...] float >= 0, the means; may be traced, and must broadcast to `shape`.
        shape: of the counts; lam's if None.
        dtype: an integer dtype; JAX's default one if None.
        out_sharding: as for `jax.random.poisson`.

    Returns:
        [*shape] of dtype `dtype`: the values of `jax.random.poisson` for the key of the built-in Threefry with the same
        words, at its speed.

    Raises:
        NotImplementedError: if the key is of another implementation.

    Source:
        `jax.random.poisson`.

    Deviations:
        None.

    Examples:
        >>> import jax, jax.numpy as jnp, jaxdp
        >>> rates = jnp.array([0.5, 100.0], jnp.float32)
        >>> counts = jaxdp.random.poisson(jaxdp.random.key(0), rates)
        >>> bool((counts == jax.random.poisson(jax.random.key(0, impl="threefry2x32"), rates)).all())
        True
    """
    return jax.random.poisson(builtin(key), lam, shape, dtype, out_sharding=out_sharding)

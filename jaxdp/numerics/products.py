"""Products of matrices in full precision."""

import jax
import jax.numpy as jnp


def product(left: jax.Array, right: jax.Array) -> jax.Array:
    """Returns `left @ right`. By default accelerators would round the factors."""
    return jnp.matmul(left, right, precision="highest")

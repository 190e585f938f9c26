"""Products that are rounded before they enter a sum."""

import jax
import jax.numpy as jnp


def rounded(product: jax.Array) -> jax.Array:
    """Returns a product as it is, rounded before it enters a sum.

    A compiler may compute a product and a sum in one operation that rounds once, or not, as the program around them
    has it. Two programs that must agree bit for bit keep the two apart by this.
    """
    return jnp.maximum(product, jnp.finfo(product.dtype).min)

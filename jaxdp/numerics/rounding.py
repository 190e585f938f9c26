"""Products that are rounded before they enter a sum."""

import jax
import jax.numpy as jnp


def round_product(product: jax.Array) -> jax.Array:
    """Returns a product unchanged, rounded before it enters a sum.

    A compiler may compute a product and a sum in one operation that rounds once, or not, depending on the program
    around them. Two programs that must agree bit for bit separate the two by this.
    """
    return jnp.maximum(product, jnp.finfo(product.dtype).min)

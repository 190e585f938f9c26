"""Products that are rounded before they enter a sum."""

import jax
import jax.numpy as jnp


def round_product(product: jax.Array) -> jax.Array:
    """Returns a product unchanged, and makes the compiler round it before it enters a sum.

    Otherwise it may or may not compute a product and a sum in one operation that rounds once, depending on the program
    around them. Two programs that must agree bit for bit call this function on their products.
    """
    return jnp.maximum(product, jnp.finfo(product.dtype).min)

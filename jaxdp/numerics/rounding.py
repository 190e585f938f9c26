"""Rounds products before they enter a sum."""

import jax
import jax.numpy as jnp


def round_product(product: jax.Array) -> jax.Array:
    """Returns a product, and makes the compiler round the product before it enters a sum.

    Otherwise, depending on the rest of the program, the compiler may use one operation for a product and a sum, which
    rounds only once. Use this function on products in two programs that must agree bit for bit. The product is
    unchanged, except that minus infinity becomes the least finite number.
    """
    return jnp.maximum(product, jnp.finfo(product.dtype).min)

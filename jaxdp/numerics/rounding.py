"""Rounds products before they enter a sum."""

import jax
import jax.numpy as jnp


def round_product(product: jax.Array) -> jax.Array:
    """Returns a product unchanged, but makes the compiler round it before it enters a sum.

    Otherwise the compiler may compute a product and a sum in one operation that rounds once, depending on the rest of
    the program. Use this function on products in two programs that must agree bit for bit.
    """
    return jnp.maximum(product, jnp.finfo(product.dtype).min)

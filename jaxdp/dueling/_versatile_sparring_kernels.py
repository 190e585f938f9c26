"""The steps of sparring, laid out for XLA on CPU: loops over lanes, each a separate kernel.

Tests check that they equal the plain steps of `_versatile_sparring` bit for bit.
"""

from collections.abc import Callable

import jax

from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import lanes_last, own_kernel
from jaxdp.random.choice import inline_index_at


def draw(uniforms: jax.Array, weights: jax.Array) -> jax.Array:
    """Computes `_versatile_sparring.draw`."""
    return own_kernel(_draw, uniforms, weights)


def add_losses(estimate: Callable[..., jax.Array], losses: compensated.Sum, *seen: jax.Array) -> compensated.Sum:
    """Computes `_versatile_sparring.add_losses`."""

    def new(losses: compensated.Sum, *seen: jax.Array) -> compensated.Sum:
        losses, seen = jax.tree.map(lanes_last, (losses, seen))
        return jax.tree.map(lanes_last, compensated.add(losses, estimate(*seen)))

    # One kernel for each array: repeating work in two kernels is faster than storing results that both need.
    return compensated.Sum(*(own_kernel(lambda *inputs, i=i: new(*inputs)[i], losses, *seen) for i in range(2)))


def _draw(uniforms: jax.Array, weights: jax.Array) -> jax.Array:
    return lanes_last(jax.vmap(inline_index_at, (0, 1))(lanes_last(uniforms), lanes_last(weights)))

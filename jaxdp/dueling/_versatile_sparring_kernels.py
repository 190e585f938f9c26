"""The steps of sparring, laid out for XLA on CPU: loops over lanes, each a separate kernel.

Tests check that the results equal the results of the plain steps in `_versatile_sparring` bit for bit.
"""

from collections.abc import Callable

import jax

from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import lanes_last, own_kernel
from jaxdp.random.choice import inline_index_at


def draw(uniforms: jax.Array, weights: jax.Array) -> jax.Array:
    """Draws the left and the right arm ([2] int32) from uniforms [2] and the players' weights [num_arms, 2]."""
    return own_kernel(_draw, uniforms, weights)


def add_losses(estimate: Callable[..., jax.Array], losses: compensated.Sum, *inputs: jax.Array) -> compensated.Sum:
    """Adds estimate(*inputs), a round's estimated losses [num_arms, 2], to the sums `losses`."""

    def add(losses: compensated.Sum, *inputs: jax.Array) -> compensated.Sum:
        losses, inputs = jax.tree.map(lanes_last, (losses, inputs))
        return jax.tree.map(lanes_last, compensated.add(losses, estimate(*inputs)))

    # One kernel for each array: repeating work in two kernels is faster than storing results that both need.
    return compensated.Sum(*(own_kernel(lambda *arrays, i=i: add(*arrays)[i], losses, *inputs) for i in range(2)))


def _draw(uniforms: jax.Array, weights: jax.Array) -> jax.Array:
    return lanes_last(jax.vmap(inline_index_at, (0, 1))(lanes_last(uniforms), lanes_last(weights)))

"""The steps of sparring, laid out for XLA on CPU: loops over lanes, each a kernel of its own.

They are tested to be equal to the plain steps of `_versatile_sparring` bit for bit, and take less time.
"""

from collections.abc import Callable

import jax

from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import lanes_last, own_kernel
from jaxdp.random.choice import inline_index_at


def draw(uniforms: jax.Array, weights: jax.Array) -> jax.Array:
    """`_versatile_sparring.draw`."""
    return own_kernel(_draw, uniforms, weights)


def added(estimate: Callable[..., jax.Array], losses: compensated.Sum, *seen: jax.Array) -> compensated.Sum:
    """`_versatile_sparring.added`.

    A kernel gives one array: two kernels that do the same are faster than what both need, stored.
    """

    def new(losses: compensated.Sum, *seen: jax.Array) -> compensated.Sum:
        losses, seen = jax.tree.map(lanes_last, (losses, seen))
        return jax.tree.map(lanes_last, compensated.add(losses, estimate(*seen)))

    return compensated.Sum(*(own_kernel(lambda *given, i=i: new(*given)[i], losses, *seen) for i in range(2)))


def _draw(uniforms: jax.Array, weights: jax.Array) -> jax.Array:
    return lanes_last(jax.vmap(inline_index_at, (0, 1))(lanes_last(uniforms), lanes_last(weights)))

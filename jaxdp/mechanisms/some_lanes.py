"""Releases in some lanes of `jax.vmap`: on CPU the other lanes cost nothing."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from jaxdp.mechanisms.tape import is_open
from jaxdp.numerics.kernels import any_lane, batch_over_lanes
from jaxdp.numerics.platforms import by_platform

CHUNK = 32  # lanes that are computed together; a multiple of every vector's length

Tree = TypeVar("Tree")


def in_flagged_lanes(flag: jax.Array, function: Callable[..., Tree], otherwise: Tree, *inputs: Any) -> Tree:
    """Returns function(*inputs) in lanes where the flag is true, and `otherwise` in the others.

    Under `jax.vmap` a branch would become a selection, for which all lanes compute the function. On CPU this function
    computes chunks of flagged lanes, until none is left. On other devices all lanes compute it if one is flagged.

    Args:
        flag: [] bool, public.
        function: function of the inputs alone; uses no batched value from outside.
        otherwise: pytree of arrays, as the function returns.
        inputs: pytrees of arrays.
    """

    def at_once(operands: Any) -> Tree:
        def everywhere() -> Tree:
            return jax.tree.map(lambda one, other: jnp.where(operands[0], one, other), function(*operands[2]), other)

        other = operands[1]
        return lax.cond(any_lane(operands[0]), everywhere, lambda: other)

    def several(operands: Any) -> Tree:
        return by_platform(operands, cpu=in_chunks, default=jax.vmap(at_once))

    def in_chunks(operands: Any) -> Tree:
        flags, outputs, inputs = operands
        size = len(flags)

        def compute_chunks() -> Tree:
            order = jnp.nonzero(flags, size=-(-size // CHUNK) * CHUNK, fill_value=size)[0].astype(jnp.int32)
            count = jnp.sum(flags, dtype=jnp.int32)

            def compute_chunk(carry: tuple[jax.Array, Tree]) -> tuple[jax.Array, Tree]:
                start, outputs = carry
                lanes = lax.dynamic_slice(order, (start,), (CHUNK,))
                chunk_outputs = jax.vmap(function)(
                    *jax.tree.map(lambda leaf: leaf[jnp.minimum(lanes, size - 1)], inputs)
                )
                return start + CHUNK, jax.tree.map(
                    lambda output, chunk: output.at[lanes].set(chunk, mode="drop"), outputs, chunk_outputs
                )

            return lax.while_loop(lambda carry: carry[0] < count, compute_chunk, (jnp.int32(0), outputs))[1]

        return lax.cond(flags.any(), compute_chunks, lambda: outputs)

    operands = flag, otherwise, inputs
    return at_once(operands) if is_open() else batch_over_lanes(at_once, several)(operands)

"""Computes a function only in some lanes of `jax.vmap`, so that the other lanes cost nothing on CPU."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
from jax import lax

from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.tape import is_open
from jaxdp.numerics.kernels import any_lane, batch_over_lanes
from jaxdp.numerics.platforms import by_platform

# Limits on the number of lanes that are computed together, an eighth of all lanes. The smallest is a multiple of every
# SIMD width. With more than the largest, arrays leave the cache.
FEWEST, MOST = 32, 256

Tree = TypeVar("Tree")


def in_flagged_lanes(flag: jax.Array, function: Callable[..., Tree], otherwise: Tree, *inputs: Any) -> Tree:
    """Returns function(*inputs) in lanes where the flag is true, and `otherwise` in other lanes.

    Under `jax.vmap` a branch becomes a selection, for which all lanes compute the function. Here, on CPU, only chunks
    of flagged lanes compute the function. On other devices, all lanes compute the function if any lane is flagged.

    Args:
        flag: [] bool, public.
        function: function of the inputs only; it must use no batched value from outside.
        otherwise: pytree of arrays with the structure, shapes and dtypes of the function's result.
        inputs: pytrees of arrays.
    """

    def compute_if_any(operands: Any) -> Tree:
        lane_flag, unchanged, lane_inputs = operands

        def compute() -> Tree:
            return jax.tree.map(
                lambda output, default: jnp.where(lane_flag, output, default), function(*lane_inputs), unchanged
            )

        return branch(any_lane(lane_flag), compute, lambda: unchanged)

    def process_lanes(operands: Any) -> Tree:
        return by_platform(operands, cpu=process_in_chunks, default=jax.vmap(compute_if_any))

    def process_in_chunks(operands: Any) -> Tree:
        flags, outputs, inputs = operands
        size = len(flags)
        together = min(max(FEWEST, size // 8), MOST)

        def compute_chunks() -> Tree:
            order = jnp.nonzero(flags, size=-(-size // together) * together, fill_value=size)[0].astype(jnp.int32)
            count = jnp.sum(flags, dtype=jnp.int32)

            def compute_chunk(carry: tuple[jax.Array, Tree]) -> tuple[jax.Array, Tree]:
                start, outputs = carry
                lanes = lax.dynamic_slice(order, (start,), (together,))
                chunk_outputs = jax.vmap(function)(
                    *jax.tree.map(lambda leaf: leaf[jnp.minimum(lanes, size - 1)], inputs)
                )
                return start + together, jax.tree.map(
                    lambda output, chunk: output.at[lanes].set(chunk, mode="drop"), outputs, chunk_outputs
                )

            return lax.while_loop(lambda carry: carry[0] < count, compute_chunk, (jnp.int32(0), outputs))[1]

        return lax.cond(flags.any(), compute_chunks, lambda: outputs)

    operands = flag, otherwise, inputs
    if is_open():  # `batch_over_lanes` always traces the function, and recorded entries cannot leave a trace
        return compute_if_any(operands)
    return batch_over_lanes(compute_if_any, process_lanes)(operands)

"""How XLA on CPU groups operations into loops; values are the same either way."""

import functools
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
from jax.custom_batching import custom_vmap
from jax.experimental.xla_metadata import set_xla_metadata

WRITTEN_OUT = 16


def stored(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function as a kernel of its own on CPU, so that its values are computed once.

    XLA on CPU would fuse what is cheap by its count (a hash, a drawn index) into each consumer of the values, and each
    would compute it again; lax.optimization_barrier does not keep it from that, for it is gone before fusion. A call
    not to be inlined does.
    """

    @functools.wraps(function)
    def inside(*arguments):
        with set_xla_metadata(inlineable="true"):  # functions of jax.numpy are calls, too: jnp.where, jnp.clip
            return function(*arguments)

    def call(*arguments):
        with set_xla_metadata(inlineable="false"):
            return jax.jit(inside)(*arguments)

    return call


def own_kernel(function: Callable[..., Any], *arguments: Any) -> Any:
    """function(*arguments), as a kernel of its own on CPU; on other devices as it is."""
    return jax.lax.platform_dependent(*arguments, cpu=stored(function), default=function)


def folded(operation: Callable[[Any, Any], Any], values: jax.Array) -> jax.Array:
    """The values [n], n >= 1, combined into one by an associative operation, such as `jnp.minimum`: [].

    Halves are combined until few values are left, and those one after the other: elementwise operations that XLA on CPU
    vectorises over lanes, where its reductions of short arrays are slow loops.
    """
    while len(values) > WRITTEN_OUT:
        half = len(values) // 2
        rest = values[2 * half :]
        values = operation(values[:half], values[half : 2 * half])
        if len(rest):
            values = values.at[0].set(operation(values[0], rest[0]))
    result = values[0]
    for index in range(1, len(values)):
        result = operation(result, values[index])
    return result


def lanes_last(function: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function over many lanes, as one that is written for a lane and knows `jax.vmap`.

    Under `vmap` all lanes go through it at once, those of nested ones too. XLA on CPU vectorises the last axis, and
    where a lane's arrays are short, that has to be the lanes' axis.

    Args:
        function: of a pytree whose arrays have the lanes on their last axis; so have its results.

    Returns:
        A function of a pytree of a lane's arrays.
    """

    @custom_vmap
    def single(inputs):
        outputs = function(jax.tree.map(lambda leaf: jnp.asarray(leaf)[..., None], inputs))
        return jax.tree.map(lambda leaf: leaf[..., 0], outputs)

    @custom_vmap
    def many(inputs):  # every leaf has a leading axis of lanes
        outputs = function(jax.tree.map(lambda leaf: jnp.moveaxis(leaf, 0, -1), inputs))
        return jax.tree.map(lambda leaf: jnp.moveaxis(leaf, -1, 0), outputs)

    def widened(axis_size: int, in_batched: Any, inputs: Any) -> Any:
        def widen(leaf: jax.Array, batched: bool) -> jax.Array:
            return leaf if batched else jnp.broadcast_to(leaf, (axis_size, *jnp.shape(leaf)))

        return jax.tree.map(widen, inputs, in_batched)

    @single.def_vmap
    def _(axis_size: int, in_batched: list[Any], inputs: Any) -> tuple[Any, Any]:
        outputs = many(widened(axis_size, in_batched[0], inputs))
        return outputs, jax.tree.map(lambda _: True, outputs)

    @many.def_vmap
    def _(axis_size: int, in_batched: list[Any], inputs: Any) -> tuple[Any, Any]:
        inputs = widened(axis_size, in_batched[0], inputs)
        merged = many(jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), inputs))
        outputs = jax.tree.map(lambda leaf: leaf.reshape(axis_size, -1, *leaf.shape[1:]), merged)
        return outputs, jax.tree.map(lambda _: True, outputs)

    return single

"""How XLA on CPU groups operations into loops; values are the same either way."""

import functools
from collections.abc import Callable
from typing import Any

import jax
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

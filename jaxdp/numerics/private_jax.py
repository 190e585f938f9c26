"""Wraps parts of JAX outside its stable interface: layouts, XLA's metadata and custom rules for `jax.vmap`.

These parts only make programs faster. With the environment variable JAXDP_PLAIN=1, they are neither used nor imported,
and `jaxdp.simulation.run.branches` does not move operations into branches. Results are the same up to rounding. Set
JAXDP_PLAIN if a new version of JAX changes one of these parts.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

PLAIN = os.environ.get("JAXDP_PLAIN", "") not in ("", "0")
# XLA computes an argmax as a pair (maximum, index) and requires the same order of axes for both. XLA of JAX 0.12 fails
# if the index is the result of a `lax.cond` and gets another order of axes, because it changes only the index's order.
SPLITS_ARGMAX = jax.__version_info__ >= (0, 12)


class _Unbatched:
    """A function that ignores rules for `jax.vmap`. It replaces the result of `custom_vmap`."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        return rule


def custom_vmap(function: Callable[..., Any]) -> Any:
    """Returns the function as an object with a method `def_vmap`. This method adds a rule for `jax.vmap`."""
    if PLAIN:
        return _Unbatched(function)
    from jax import custom_batching

    return custom_batching.custom_vmap(function)


def mark_inlineable(allowed: bool) -> contextlib.AbstractContextManager[None]:
    """Marks calls that are traced inside a `with` block. XLA on CPU may inline them only if `allowed` is true."""
    if PLAIN:
        return contextlib.nullcontext()
    from jax.experimental.xla_metadata import set_xla_metadata

    return set_xla_metadata(inlineable=str(allowed).lower())


def order_axes(values: jax.Array, axes: Sequence[int]) -> jax.Array:
    """Returns the values, stored with the given order of axes. The last of `axes` is the fast axis."""
    if PLAIN:
        return values
    from jax.experimental.layout import Layout, with_layout_constraint

    return with_layout_constraint(values, Layout(major_to_minor=tuple(axes)))


def keep_argmax_layout(values: jax.Array) -> jax.Array:
    """Returns the values. From JAX 0.12 on, integers (possibly an argmax) are stored in the usual order of axes."""
    may_be_index = SPLITS_ARGMAX and jnp.issubdtype(values.dtype, jnp.integer)
    return order_axes(values, range(values.ndim)) if may_be_index else values

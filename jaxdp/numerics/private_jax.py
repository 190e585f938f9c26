"""The parts of JAX that jaxdp uses beyond its stable interface: layouts, XLA's metadata, custom rules for `jax.vmap`.

They only make programs faster on a CPU. With JAXDP_PLAIN=1 in the environment none of them is used or imported, and
results are the same up to rounding: a workaround if a new version of JAX changes one of them.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

PLAIN = os.environ.get("JAXDP_PLAIN", "") not in ("", "0")
# XLA of JAX 0.12 fails at an argmax that is the result of a `lax.cond` if its index gets another order of axes: it
# gives that order to the index alone, and then requires that index and maximum have the same.
SPLITS_ARGMAX = jax.__version_info__ >= (0, 12)


class _Unbatched:
    """A function unchanged, in place of one to which `custom_vmap` would give a rule."""

    def __init__(self, function: Callable[..., Any]):
        self._function = function

    def __call__(self, *arguments: Any) -> Any:
        return self._function(*arguments)

    def def_vmap(self, rule: Callable[..., Any]) -> Callable[..., Any]:
        return rule


def custom_vmap(function: Callable[..., Any]) -> Any:
    """Returns the function in a form to which `def_vmap` adds a rule for `jax.vmap`."""
    if PLAIN:
        return _Unbatched(function)
    from jax import custom_batching

    return custom_batching.custom_vmap(function)


def mark_inlineable(allowed: bool) -> contextlib.AbstractContextManager[None]:
    """Marks calls traced within it as calls that XLA on CPU may inline, or must not."""
    if PLAIN:
        return contextlib.nullcontext()
    from jax.experimental.xla_metadata import set_xla_metadata

    return set_xla_metadata(inlineable=str(allowed).lower())


def order_axes(values: jax.Array, axes: Sequence[int]) -> jax.Array:
    """Returns the values, stored with the axes in this order, the last one as the fast one."""
    if PLAIN:
        return values
    from jax.experimental.layout import Layout, with_layout_constraint

    return with_layout_constraint(values, Layout(major_to_minor=tuple(axes)))


def keep_argmax_layout(values: jax.Array) -> jax.Array:
    """Returns the values; if they may be an argmax, their producer keeps XLA's own order of axes."""
    may_be_index = SPLITS_ARGMAX and jnp.issubdtype(values.dtype, jnp.integer)
    return order_axes(values, range(values.ndim)) if may_be_index else values

"""Checks on the host that arguments are algorithms (not factories), and that JAX accepts an algorithm's params."""

import functools
import inspect
from typing import Any

import jax
import numpy as np

from jaxdp.validation import WITH_X64


def check_made(name: str, value: Any, kind: type) -> None:
    """Raises a ValueError if `value` is not of type `kind`, for example if it is a factory that was not called."""
    if not isinstance(value, kind):
        value = value.func if isinstance(value, functools.partial) else value
        if inspect.isroutine(value):
            got = f"the function {value.__name__}: call it, as {value.__name__}(...)"
        else:
            got = f"the class {value.__name__}" if isinstance(value, type) else f"an instance of {type(value).__name__}"
        raise ValueError(f"{name} must be of type jaxdp.{kind.__name__}, got {got}")


def check_leaves(name: str, tree: Any) -> Any:
    """Returns the pytree. Raises a ValueError unless its leaves are numbers and arrays that JAX can represent.

    Errors call the pytree `name`.
    """
    for leaf in jax.tree.leaves(tree):
        if not isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic | jax.Array):
            type_name = type(leaf).__name__
            raise ValueError(
                f"{name} must be a pytree of numbers and arrays, got an instance of {type_name}: if "
                f"{type_name} is your class, decorate it with jax.tree_util.register_dataclass"
            )
        check_integers(name, leaf)
    return tree


def check_integers(name: str, leaf: Any) -> None:
    """Raises a ValueError if an integer in a leaf overflows in the leaf's JAX dtype. Errors call the leaf `name`."""
    is_python = isinstance(leaf, int) and not isinstance(leaf, bool)
    dtype = int if is_python else getattr(leaf, "dtype", None)
    if dtype not in (int, np.int64, np.uint64) or isinstance(leaf, jax.Array):  # JAX has checked its own arrays
        return
    limits = np.iinfo(jax.dtypes.canonicalize_dtype(dtype))
    for extreme in (int(np.min(leaf)), int(np.max(leaf))) if np.size(leaf) else ():
        if not limits.min <= extreme <= limits.max:
            is_short = limits.bits < 64
            raise ValueError(
                f"{name} must have integers in [{limits.min}, {limits.max}]"
                f"{' without 64-bit integers' if is_short else ''}, got {extreme}{WITH_X64 if is_short else ''}"
            )

"""Checks on the host that arguments are algorithms (not factories), and that JAX accepts an algorithm's params."""

import functools
import inspect
from typing import Any

import jax
import jax.numpy as jnp
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


def check_leaves(name: str, tree: Any, *, allow_keys: bool = False) -> Any:
    """Returns the pytree. Raises a ValueError unless its leaves are numbers and arrays that JAX can represent.

    Errors call the pytree `name`. Typed PRNG keys are refused, because NumPy cannot represent them, unless `allow_keys`
    is True.
    """
    for leaf in jax.tree.leaves(tree):
        if not isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic | jax.Array):
            type_name = type(leaf).__name__
            raise ValueError(
                f"{name} must be a pytree of numbers and arrays, got an instance of {type_name}: if "
                f"{type_name} is your class, decorate it with jax.tree_util.register_dataclass"
            )
        if not allow_keys and isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
            raise ValueError(
                f"{name} must be a pytree of numbers and arrays, got a PRNG key: pass jax.random.key_data(key), and "
                "make the key from it by jax.random.wrap_key_data"
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

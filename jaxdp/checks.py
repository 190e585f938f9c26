"""Checks of host-side arguments: an algorithm and not its factory, params that JAX accepts."""

import functools
import inspect
from typing import Any

import jax
import numpy as np


def check_made(name: str, value: Any, kind: type) -> None:
    """Checks that an argument is an algorithm, and not the factory that makes it.

    Args:
        name: of the argument.
        value: the argument.
        kind: `Learner`, `Environment`, `Estimator` or `Problem`.

    Raises:
        ValueError: if it is not.
    """
    if not isinstance(value, kind):
        value = value.func if isinstance(value, functools.partial) else value
        if inspect.isroutine(value):
            got = f"the function {value.__name__}: call it, as {value.__name__}(...)"
        else:
            got = f"the class {value.__name__}" if isinstance(value, type) else f"an instance of {type(value).__name__}"
        raise ValueError(f"{name} must be of type jaxdp.{kind.__name__}, got {got}")


def check_leaves(who: str, params: Any) -> Any:
    """Returns params, if they are a pytree of numbers and arrays.

    Args:
        who: owner of the params, for the error.
        params: as `params(**values)` returns them.

    Raises:
        ValueError: if they are not, such as an instance of a class unknown to JAX.
    """
    for leaf in jax.tree.leaves(params):
        if not isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic | jax.Array):
            type_name = type(leaf).__name__
            raise ValueError(
                f"params of {who} must be a pytree of numbers and arrays, got an instance of {type_name}: decorate the "
                f"class {type_name} by jax.tree_util.register_dataclass, if it is one of yours"
            )
    return params

"""Checks of what is handed over on the host: an algorithm and not its factory, params that JAX can take."""

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
        ValueError: if not.
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
        who: whose they are, for the error.
        params: as `params(**values)` returns them.

    Raises:
        ValueError: if not, as an instance of a class that JAX does not know.
    """
    for leaf in jax.tree.leaves(params):
        if not isinstance(leaf, bool | int | float | complex | np.ndarray | np.generic | jax.Array):
            found = type(leaf).__name__
            raise ValueError(
                f"params of {who} must be a pytree of numbers and arrays, got an instance of {found}: decorate the "
                f"class {found} by jax.tree_util.register_dataclass, if it is one of yours"
            )
    return params

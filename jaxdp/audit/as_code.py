"""Writes Python code that recreates inputs and audits them."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

ONE_BY_ONE = 4  # a larger array of equal entries is written as `full(...)`


def expression(value: Any, names: dict[str, str]) -> str:
    """Writes a Python expression for a pytree of arrays, numbers, tuples, NamedTuples, lists, dicts and None.

    Args:
        value: the pytree. A number is written as an array of shape [].
        names: a dict to which this function adds the module of each NamedTuple class in the expression, keyed by the
            class's name. The expression also needs NumPy's `array`, `full`, `inf` and `nan`, which are not added.

    Returns:
        One line of code. Its arrays have the same bits (a NaN may be any NaN), dtypes and shapes.

    Examples:
        >>> names = {}
        >>> print(expression((np.float32([1, np.nan]), np.zeros(9, np.int32)), names), names)
        (array([1.0, nan], 'float32'), full((9,), 0, 'int32')) {}
    """
    if value is None:
        return "None"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {expression(item, names)}" for key, item in value.items()) + "}"
    if isinstance(value, tuple | list):
        items = [expression(item, names) for item in value]
        fields = getattr(value, "_fields", None)
        if fields is not None:
            cls = type(value)
            names[cls.__name__] = cls.__module__
            return f"{cls.__name__}({', '.join(f'{n}={i}' for n, i in zip(fields, items, strict=True))})"
        joined = ", ".join(items)
        return f"[{joined}]" if isinstance(value, list) else f"({joined}{',' if len(items) == 1 else ''})"
    if not isinstance(value, np.ndarray | np.generic | jax.Array | int | float):
        raise TypeError(f"cannot be written as code: {type(value).__name__}")
    array = np.asarray(value)
    plain = array.ravel()
    if array.size == 0:
        return f"full({array.shape}, 0, {str(array.dtype)!r})"
    if array.size > ONE_BY_ONE and len({repr(item) for item in plain.tolist()}) == 1:  # 0.0 is not -0.0
        return f"full({array.shape}, {plain[0].item()!r}, {str(array.dtype)!r})"
    return f"array({array.tolist()!r}, {str(array.dtype)!r})"


def program(pair: tuple[Any, Any], call: str, setup: Sequence[str] = ()) -> str:
    """Writes a complete program that audits a pair of inputs.

    Args:
        pair: two inputs.
        call: an expression for the attack; in it `first` and `second` are the inputs, and `registry` is
            `jaxdp.registry`.
        setup: lines of code before the inputs.
    """
    names: dict[str, str] = {}
    first, second = (expression(data, names) for data in pair)
    return "\n".join(
        [
            "import jax",
            "from numpy import array, full, inf, nan",
            "from jaxdp import registry",
            "from jaxdp.audit import audit",
            *(f"from {module} import {name}" for name, module in sorted(names.items())),
            *setup,
            f"first = {first}",
            f"second = {second}",
            f"print(audit(jax.random.key(0), {call}))",
        ]
    )

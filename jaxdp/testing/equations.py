"""Reads the equations of a traced function."""

from collections.abc import Hashable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np


def is_key(var: Any) -> bool:
    """Returns whether a variable of a jaxpr is a key, or an array of keys."""
    dtype = getattr(var.aval, "dtype", None)
    return dtype is not None and jnp.issubdtype(dtype, jax.dtypes.prng_key)


def is_integer(var: Any) -> bool:
    """Returns whether a variable of a jaxpr has an integer dtype; the variable must not be a key."""
    return jnp.issubdtype(var.aval.dtype, jnp.integer)


def indices_of(eqn: Any, output: int) -> np.ndarray:
    """Returns the flat indices of the elements of an array that an equation's output may contain; all if unknown."""
    indices, params = np.arange(eqn.invars[0].aval.size).reshape(eqn.invars[0].aval.shape), eqn.params
    if eqn.primitive.name == "slice":
        steps = params["strides"] or (1,) * indices.ndim
        indices = indices[tuple(map(slice, params["start_indices"], params["limit_indices"], steps))]
    elif eqn.primitive.name == "unstack":
        indices = indices.take(output, params["axis"])
    return indices.ravel()


def inner_of(params: Any, num_inputs: int) -> Any:
    """Returns the closed jaxpr of a call; None for an equation that is not a call."""
    for value in params.values():
        if hasattr(value, "jaxpr") and hasattr(value, "consts") and len(value.jaxpr.invars) == num_inputs:
            return value
    return None


def content_of(name: str, params: Any, inputs: list[int]) -> Hashable | None:
    """Returns the operation and its inputs as a hashable object; None if params are not hashable.

    Operations with equal objects have equal results.
    """
    content = name, tuple(sorted((key, value) for key, value in params.items() if value is not None)), tuple(inputs)
    try:
        hash(content)
    except TypeError:
        return None
    return content


def location_of(eqn: Any) -> str:
    """Returns the function, line and file of the user's code that made an equation, as text; empty if unknown."""
    traceback = getattr(eqn.source_info, "traceback", None)
    location, frame = "", traceback.as_python_traceback() if traceback is not None else None
    while frame is not None:
        code = frame.tb_frame.f_code
        if "/jax/" not in code.co_filename:
            location = f" in {code.co_name}, line {frame.tb_lineno} of {code.co_filename.rsplit('/', 1)[-1]}"
        frame = frame.tb_next
    return location


def split_scan(params: Any, inputs: list[int]) -> tuple[list[int], ...]:
    """Returns the inputs of a scan: its constants, its carry, and the arrays that it iterates over."""
    if "num_consts" in params:
        ends = params["num_consts"], params["num_consts"] + params["num_carry"]
        return inputs[: ends[0]], inputs[ends[0] : ends[1]], inputs[ends[1] :]
    return tuple(map(list, params["ft_in"].update(inputs).unpack()))  # newer versions of JAX

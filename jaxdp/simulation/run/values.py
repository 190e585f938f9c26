"""Passes each value of a grid point to the functions that have an argument of the same name."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import numpy as np
from jax.core import Tracer

from jaxdp.core import default_float
from jaxdp.validation import did_you_mean, refuse_masked

_NOTHING: Mapping[str, Collection[str]] = MappingProxyType({})
Taker = tuple[str, Callable[..., Any]]  # (name for errors, function that takes values)


def parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """Returns a function's parameters keyed by name."""
    return inspect.signature(function).parameters


def with_names(function: Callable[..., Any], takers: Sequence[Taker]) -> Callable[..., Any]:
    """Sets the signature of a function of keyword arguments, for `help` and completion.

    The signature lists the arguments of all takers, each with the default of the first taker that has the argument.
    """
    all_parameters: dict[str, inspect.Parameter] = {}
    for _, taker in takers:
        for name, parameter in parameters(taker).items():
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                all_parameters.setdefault(name, parameter.replace(kind=parameter.KEYWORD_ONLY))
    signature = inspect.Signature([*all_parameters.values()])
    function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return function


def select_values(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the entries of `values` with names of arguments of `function`."""
    return {name: values[name] for name in parameters(function) if name in values}


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function of keyword arguments that calls `function` once for each distinct set of values.

    All grid points with the same values then share one object, and a sweep stores the object's arrays once. Results are
    cached as long as the returned function exists. Two values are the same if they have the same type and content: 1,
    1.0 and True are three distinct values, and an array that is changed in place becomes another value. After a change
    of JAX's default float type, all values count as new. If a value has no hash, `function` is called each time.
    """
    cache: dict[Any, Any] = {}

    def call_once(**values: Any) -> Any:
        try:
            key = default_float(), frozenset((name, _content(v)) for name, v in values.items())
        except TypeError:  # no hash
            return function(**values)
        # Two threads may both call the function, and both get the first stored result.
        return cache[key] if key in cache else cache.setdefault(key, function(**values))

    return call_once


def _content(value: Any) -> Any:
    """Returns a hashable object that is equal for values of the same type and content."""
    if isinstance(value, bool | int | float | complex | np.generic | np.ndarray | jax.Array):
        array = np.asarray(value)
        if array.dtype != object and not isinstance(value, np.ma.MaskedArray):  # `array` lacks the mask
            return type(value), array.dtype.str, array.shape, array.tobytes()  # 0.0 and -0.0 differ
    if isinstance(value, list | tuple):
        return type(value), tuple(_content(part) for part in value)
    hash(value)
    return type(value), value


def is_list(values: Any) -> bool:
    """Returns whether `values` is a list, tuple, range or array with axes. A NamedTuple counts as one value."""
    plain = isinstance(values, list | range) or (isinstance(values, tuple) and not hasattr(values, "_fields"))
    return plain or (hasattr(values, "__array__") and np.ndim(values) > 0)


def as_list(name: str, values: Any) -> list[Any]:
    """Returns the values of an axis as a list. Raises a ValueError for a single value, a string or masked entries."""
    refuse_masked(name, values)
    if hasattr(values, "__array__"):
        values = np.asarray(values).tolist()
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"axes must be sequences of values, got {name}={values!r}")
    values = list(values)
    for value in values:
        refuse_masked(name, value)
    return [plain(value) for value in values]


def plain(value: Any) -> Any:
    """Returns a number or text for an array without axes that contains one. Returns other values as they are."""
    is_array = isinstance(value, np.ndarray | jax.Array) and not isinstance(value, Tracer)
    return value.item() if is_array and not value.shape and getattr(value.dtype, "kind", "O") in "biufU" else value


def maker(function: Callable[..., Any]) -> str:
    """Returns the name of the factory that made a function, or the function's name if there is no factory."""
    return getattr(function, "__qualname__", type(function).__name__).split(".<locals>")[0]


def check_point(params: Any, names: Collection[str]) -> None:
    """Raises a ValueError unless the parameters are a dict with these names, as returned by a run's `params`."""
    if not (isinstance(params, Mapping) and set(params) == set(names)):
        is_dict = isinstance(params, Mapping)
        got = f"dict of {', '.join(map(str, params)) or 'nothing'}" if is_dict else type(params).__name__
        raise ValueError(f"params must be made by run.params(...), for example run.params(epsilon=1.0), got a {got}")


def check_taken(
    values: Mapping[str, Any], takers: Sequence[Taker], supplied: Mapping[str, Collection[str]] = _NOTHING
) -> None:
    """Raises a ValueError if no function accepts a value, or if a required value is missing.

    `supplied` maps the name of a taker to the names of values that the taker gets by other means.
    """
    names = {name for _, function in takers for name in parameters(function)}
    for name in values:
        if name not in names:
            raise ValueError(f"values must be among {', '.join(sorted(names))}, got {name}{did_you_mean(name, names)}")
    for who, function in takers:
        for name, parameter in parameters(function).items():
            if parameter.default is parameter.empty and name not in {*values, *supplied.get(who, ())}:
                raise ValueError(f"values must have {name}, which {who} needs, got {', '.join(values) or 'none'}")

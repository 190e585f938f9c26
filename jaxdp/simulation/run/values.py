"""Named values of a grid point, handed to the functions that take them."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import jax
import numpy as np

from jaxdp.core import default_float
from jaxdp.validation import did_you_mean

_NOTHING: Mapping[str, Collection[str]] = MappingProxyType({})
Taker = tuple[str, Callable[..., Any]]  # who it is, for errors, and the function


def parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    """A function's parameters by name."""
    return inspect.signature(function).parameters


def with_names(function: Callable[..., Any], takers: Sequence[Taker]) -> Callable[..., Any]:
    """Returns the function of named values with a signature that lists the names, for `help` and completion.

    A name has the default of the first taker; one that only some takers need has none.
    """
    found: dict[str, inspect.Parameter] = {}
    for _, taker in takers:
        for name, parameter in parameters(taker).items():
            if parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
                found.setdefault(name, parameter.replace(kind=parameter.KEYWORD_ONLY))
    signature = inspect.Signature([*found.values()])
    function.__signature__ = signature  # pyright: ignore[reportFunctionMemberAccess]
    return function


def taken(function: Callable[..., Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """The named values, without those that the function does not take."""
    return {name: values[name] for name in parameters(function) if name in values}


def once(function: Callable[..., Any]) -> Callable[..., Any]:
    """The same function of named values, called once for each distinct set of them.

    A sweep then finds one object at all grid points that have the same values, and holds its arrays once. What was
    returned is kept as long as the function that this makes. Values are the same if they have one type and one content:
    1, 1.0 and True are three values, and so is an array before and after a change. Values without a hash
    cannot be compared, so the function is called for them each time.
    """
    found: dict[Any, Any] = {}

    def known(**values: Any) -> Any:
        try:
            key = default_float(), frozenset((name, _content(v)) for name, v in values.items())
        except TypeError:  # no hash
            return function(**values)
        # Of two threads both may call, and both get what the first one kept.
        return found[key] if key in found else found.setdefault(key, function(**values))

    return known


def _content(value: Any) -> Any:
    """Something with a hash that is equal for values of one type and content."""
    if isinstance(value, bool | int | float | complex | np.generic | np.ndarray | jax.Array):
        array = np.asarray(value)
        if array.dtype != object and not isinstance(value, np.ma.MaskedArray):  # the mask is no part of the array
            return type(value), array.dtype.str, array.shape, array.tobytes()  # 0.0 and -0.0 are two
    if isinstance(value, list | tuple):
        return type(value), tuple(_content(item) for item in value)
    hash(value)
    return type(value), value


def is_list(values: Any) -> bool:
    """Whether these are several values, as a list or an array. A NamedTuple, as a link is, is one."""
    plain = isinstance(values, list | range) or (isinstance(values, tuple) and not hasattr(values, "_fields"))
    return plain or (hasattr(values, "__array__") and np.ndim(values) > 0)


def as_list(name: str, values: Any) -> list[Any]:
    """The values of an axis.

    Raises:
        ValueError: if they are one value, or a text.
    """
    if hasattr(values, "__array__"):
        values = np.asarray(values).tolist()
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ValueError(f"axes must have a sequence of values each, got {name}={values!r}")
    return list(values)


def maker(function: Callable[..., Any]) -> str:
    """The name of the factory that made a function, or of the function."""
    return getattr(function, "__qualname__", type(function).__name__).split(".<locals>")[0]


def check_point(params: Any, names: Collection[str]) -> None:
    """Checks that a run gets the parameters that its own `params` made.

    Args:
        params: of the run.
        names: of the parts that `params` makes.

    Raises:
        ValueError: if not.
    """
    if not (isinstance(params, Mapping) and set(params) == set(names)):
        known = isinstance(params, Mapping)
        got = f"dict of {', '.join(map(str, params)) or 'nothing'}" if known else type(params).__name__
        raise ValueError(f"params must be what run.params(...) returns, as run.params(epsilon=1.0), got a {got}")


def check_taken(
    values: Mapping[str, Any], takers: Sequence[Taker], told: Mapping[str, Collection[str]] = _NOTHING
) -> None:
    """Checks that every value is taken by someone, and every required one is there.

    Args:
        values: by name.
        takers: who takes values.
        told: by taker, names that come from elsewhere and need not be given.

    Raises:
        ValueError: if not.
    """
    names = {name for _, function in takers for name in parameters(function)}
    for name in values:
        if name not in names:
            raise ValueError(f"values must be among {', '.join(sorted(names))}, got {name}{did_you_mean(name, names)}")
    for who, function in takers:
        for name, parameter in parameters(function).items():
            if parameter.default is parameter.empty and name not in {*values, *told.get(who, ())}:
                raise ValueError(f"values must have {name}, which {who} needs, got {', '.join(values) or 'none'}")

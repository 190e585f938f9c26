"""Records the factory and the arguments that made an algorithm, for `repr` and for tables."""

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np
from jax.core import Tracer

P = ParamSpec("P")
Made = TypeVar("Made")
LONGEST = 200  # every text has fewer characters
FEW = 8  # a longer list is printed as its length
MOST = 1000  # maximum number of entries of a stored array
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+|0x[0-9a-fA-F]{6,}")


class MadeBy:
    """A factory's name and the arguments of a call.

    Its `repr` is one line of less than 200 characters, without memory addresses. The constructor's argument `unnamed`
    lists the arguments that `repr` prints without their names.

    Attributes:
        name: name of the factory.
        arguments: the arguments that were passed, keyed by name. An array with more than 1,000 entries is replaced by
            its shape and dtype, to save memory.

    Examples:
        >>> MadeBy("explore_then_commit", {"num_arms": 4, "explore_rounds": 800})
        explore_then_commit(num_arms=4, explore_rounds=800)
    """

    def __init__(self, name: str, arguments: Mapping[str, Any], unnamed: tuple[str, ...] = ()) -> None:
        self.name, self.arguments = name, {name: _shrink_array(value) for name, value in arguments.items()}
        self._unnamed = unnamed

    def __repr__(self) -> str:
        room, line = LONGEST - 1 - len(f"{self.name}()"), ""
        for most in (LONGEST // 2, LONGEST // 4, LONGEST // 8):
            shown_values = {name: text(value, most) for name, value in self.arguments.items()}
            line = ", ".join(
                shown if name in self._unnamed else f"{name}={shown}" for name, shown in shown_values.items()
            )
            if len(line) <= room:
                break
        return shorten(f"{self.name}({line if len(line) <= room else line[: max(room - 3, 0)] + '...'})")


def factory(function: Callable[P, Made]) -> Callable[P, Made]:
    """Decorates a factory so that its result records the factory's name and arguments.

    Args:
        function: returns a NamedTuple with a field `made_by`. If factories are nested, the outermost one is recorded.

    Returns:
        The factory, which also sets `made_by`.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def make(*args: P.args, **kwargs: P.kwargs) -> Made:
        result: Any = function(*args, **kwargs)
        arguments = signature.bind(*args, **kwargs).arguments
        return result._replace(made_by=MadeBy(getattr(function, "__name__", type(function).__name__), arguments))

    return make


def reusing_factory(function: Callable[P, Made]) -> Callable[P, Made]:
    """Decorates a factory so that its result records the call, and so that equal calls return the same object.

    JAX then reuses the programs that it compiled for the object's functions. Calls are equal if they pass equal
    arguments of the same types in the same way (by position, or by name in the same order). The last 128 requested
    objects are stored.

    Args:
        function: a function as for `factory`, with a result that depends only on the arguments. Unhashable arguments
            give a new object each time.

    Returns:
        The factory, which also sets `made_by` and reuses objects.
    """
    make = factory(function)
    cache = functools.lru_cache(maxsize=128, typed=True)(make)

    @functools.wraps(function)
    def make_once(*args: P.args, **kwargs: P.kwargs) -> Made:
        try:
            hash((args, tuple(kwargs.values())))
        except TypeError:
            return make(*args, **kwargs)
        return cache(*args, **kwargs)

    return make_once


def describe(algorithm: Any, kind: str) -> str:
    """Returns the factory call that made an algorithm; if none is recorded, "<kind name>".

    The name is then the qualified name of the algorithm's function `params`, cut before its first ".<locals>".
    """
    if algorithm.made_by is not None:
        return repr(algorithm.made_by)
    function = algorithm.params
    return shorten(f"<{kind} {getattr(function, '__qualname__', type(function).__name__).split('.<locals>')[0]}>")


def format_tuple(value: Any) -> str:
    """Formats a named tuple in one line of less than 200 characters, with arrays as dtype and shape.

    An array without axes is printed as its value, unless it is traced or inside a field `private`. Such a field never
    shows a value: numbers in it are printed as their type.

    Examples:
        >>> from jaxdp.core import State
        >>> State(private={"wins": np.zeros((8, 8), np.int32)}, public=np.float32(0.5))
        State(private={wins: int32[8, 8]}, public=0.5)
    """
    return shorten(_brief(value))


def shorten(line: str) -> str:
    """Returns a text as one line of less than 200 characters without memory addresses."""
    line = _ADDRESS.sub("", " ".join(line.split()))
    return line if len(line) < LONGEST else f"{line[: LONGEST - 4]}..."


def text(value: Any, most: int = LONGEST // 2) -> str:
    """Formats an argument briefly.

    A text of more than `most` characters is replaced: for an algorithm, by its factory's name and "(...)"; for other
    values, by their attribute `name` or their type. Names of functions are cut at 200 characters.
    """
    if isinstance(value, np.ndarray | jax.Array) and value.ndim == 0:
        return shorten(str(value))
    if isinstance(value, np.ndarray | jax.Array | jax.ShapeDtypeStruct):
        return f"<{' by '.join(map(str, value.shape))} array>"
    if type(value) is int and value >= 10**5 and str(value).strip("0") == "1":
        return f"10**{len(str(value)) - 1}"
    if callable(value):
        return shorten(getattr(value, "__name__", type(value).__name__))
    if isinstance(value, list | tuple) and not hasattr(value, "_fields") and len(value) > FEW:
        return f"<{len(value)} values>"
    if type(value) is list:
        line = f"[{', '.join(text(element, most) for element in value)}]"
    elif type(value) is dict:
        line = f"{{{', '.join(f'{name!r}: {text(argument, most)}' for name, argument in value.items())}}}"
    else:
        line = shorten(repr(value))
    if len(line) <= most:
        return line
    made_by = getattr(value, "made_by", None)
    return f"<{getattr(value, 'name', type(value).__name__)}>" if made_by is None else f"{made_by.name}(...)"


def _shrink_array(value: Any) -> Any:
    is_large = isinstance(value, np.ndarray | jax.Array) and value.size > MOST
    return jax.ShapeDtypeStruct(value.shape, value.dtype) if is_large else value


def _brief(value: Any, secret: bool = False) -> str:
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        fields = zip(value._fields, value, strict=True)  # pyright: ignore[reportAttributeAccessIssue]
        inside = ", ".join(f"{name}={_brief(item, secret or name == 'private')}" for name, item in fields)
        return f"{type(value).__name__}({inside})"
    if type(value) in (list, tuple):
        return f"({', '.join(_brief(item, secret) for item in value)})"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_brief(item, secret)}' for name, item in value.items())}}}"
    if isinstance(value, np.ndarray | np.generic | jax.Array) and (value.ndim or secret or isinstance(value, Tracer)):
        return f"{value.dtype}[{', '.join(map(str, value.shape))}]"
    if secret:
        return type(value).__name__
    return str(value) if isinstance(value, np.generic) else text(value)

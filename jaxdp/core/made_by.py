"""Which factory made an algorithm, and of what: for people who look at one, and for tables."""

import functools
import inspect
from collections.abc import Callable, Mapping
from typing import Any, ParamSpec, TypeVar

import jax
import numpy as np

P = ParamSpec("P")
Made = TypeVar("Made")
LONGEST = 200  # characters of a text, less one
FEW = 8  # values of a list that are written out
MOST = 1000  # entries of an array that is kept


class MadeBy:
    """A factory's name and the arguments that it was called with.

    Attributes:
        name: of the factory.
        arguments: by name, as given; those left at their defaults are not among them. Of arrays with more than 1,000
            entries, which would take memory as long as the algorithm, shape and dtype.

    >>> MadeBy("explore_then_commit", {"num_arms": 4, "explore_rounds": 800})
    explore_then_commit(num_arms=4, explore_rounds=800)
    """

    def __init__(self, name: str, arguments: Mapping[str, Any]) -> None:
        self.name, self.arguments = name, {name: _kept(value) for name, value in arguments.items()}

    def __repr__(self) -> str:
        inside = ", ".join(f"{name}={_text(value)}" for name, value in self.arguments.items())
        room = LONGEST - 1 - len(f"{self.name}()")
        return f"{self.name}({inside if len(inside) <= room else inside[: room - 3] + '...'})"


def factory(function: Callable[P, Made]) -> Callable[P, Made]:
    """Decorates a factory, so that what it returns says how it was made.

    Args:
        function: returns a NamedTuple with a field `made_by`. Of factories that call one another the outermost is told.

    Returns:
        The same function.
    """
    signature = inspect.signature(function)

    @functools.wraps(function)
    def made(*args: P.args, **kwargs: P.kwargs) -> Made:
        result: Any = function(*args, **kwargs)
        arguments = signature.bind(*args, **kwargs).arguments
        return result._replace(made_by=MadeBy(getattr(function, "__name__", type(function).__name__), arguments))

    return made


def described(value: Any, kind: str) -> str:
    """The text of an algorithm: how it was made, or what kind it is and the name of one of its functions."""
    if value.made_by is not None:
        return repr(value.made_by)
    function = value.params
    return f"<{kind} {getattr(function, '__qualname__', type(function).__name__).split('.<locals>')[0]}>"


def _kept(value: Any) -> Any:
    is_large = isinstance(value, np.ndarray | jax.Array) and value.size > MOST
    return jax.ShapeDtypeStruct(value.shape, value.dtype) if is_large else value


def _text(value: Any) -> str:
    if isinstance(value, np.ndarray | jax.Array) and value.ndim == 0:
        return str(value)
    if isinstance(value, np.ndarray | jax.Array | jax.ShapeDtypeStruct):
        return f"<{'x'.join(map(str, value.shape))} array>"
    if callable(value):
        return getattr(value, "__name__", type(value).__name__)
    if isinstance(value, list | tuple) and len(value) > FEW:
        return f"<{len(value)} values>"
    text = " ".join(repr(value).split())  # one line
    return text if len(text) <= LONGEST // 2 else f"<{getattr(value, 'name', type(value).__name__)}>"

"""A decorator that traces a mechanism once for all programs that use it."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

import jax

from jaxdp.mechanisms.tape import is_open

Function = TypeVar("Function", bound=Callable[..., Any])


def traced_once(*static: str) -> Callable[[Function], Function]:
    """Returns a decorator with which all calls of a mechanism with the same shapes and dtypes share one trace.

    The operations are inlined in the program that calls the mechanism. If a tape is open, the mechanism runs without
    the shared trace, so that its releases are recorded.

    Args:
        static: names of arguments that are not arrays.
    """

    def decorate(function: Function) -> Function:
        compiled = partial(jax.jit, static_argnames=static, inline=True)(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) if is_open() else compiled(*args, **kwargs)

        return call  # pyright: ignore[reportReturnType]

    return decorate

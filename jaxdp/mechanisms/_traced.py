"""Mechanisms that are traced once, and not in every program anew."""

from collections.abc import Callable
from functools import partial, wraps
from typing import Any, TypeVar

import jax

from jaxdp.mechanisms.tape import is_open

Function = TypeVar("Function", bound=Callable[..., Any])


def traced_once(*static: str) -> Callable[[Function], Function]:
    """Returns a decorator of a mechanism: calls with arguments of one form share one trace, and one program.

    What a larger program has of it are its operations, as without. Where a tape is open, the mechanism records on it.

    Args:
        static: names of arguments that are no arrays.
    """

    def decorate(function: Function) -> Function:
        compiled = partial(jax.jit, static_argnames=static, inline=True)(function)

        @wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            return function(*args, **kwargs) if is_open() else compiled(*args, **kwargs)

        return call  # pyright: ignore[reportReturnType]

    return decorate

"""How a simulation is traced: for which kind of device, and with which products of matrices."""

import contextlib
import functools
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any

import jax

_platform: ContextVar[str | None] = ContextVar("platform", default=None)


def is_cpu() -> bool:
    """Returns whether programs are traced for a CPU: as `traced_for` says, or JAX's default device is one."""
    return (_platform.get() or jax.default_backend()) == "cpu"


@contextlib.contextmanager
def traced_for(platform: str) -> Generator[None, None, None]:
    """Simulations traced within are for this kind of device, as "cpu" or "gpu"."""
    token = _platform.set(platform)
    try:
        yield
    finally:
        _platform.reset(token)


def with_full_products(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function, traced so that no device rounds the factors of a product of matrices.

    A GPU would by default, also in a user's own code and in libraries: float32 to ten bits (TF32).
    """

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments)

    return call

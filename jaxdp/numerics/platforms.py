"""Computations with one implementation for CPUs, and another for other devices."""

import contextlib
import functools
from collections.abc import Callable, Generator
from contextvars import ContextVar
from typing import Any

import jax

_platform: ContextVar[str | None] = ContextVar("platform", default=None)


def by_platform(*arguments: Any, cpu: Callable[..., Any], default: Callable[..., Any]) -> Any:
    """Returns the result of the platform's implementation, as `jax.lax.platform_dependent` does.

    That function traces every implementation. If JAX has only CPUs, only theirs is traced, which saves a sixth to a
    quarter of the time until a program is compiled. Such a process lowers the CPU's implementation for other platforms,
    too, unless it traces within `trace_for`; it has the same values there.

    Args:
        arguments: pytrees of arrays.
        cpu: the implementation for CPUs.
        default: the implementation for other devices; its result has the same shapes and dtypes.
    """
    if is_cpu() and has_only_cpus():
        return cpu(*arguments)
    return jax.lax.platform_dependent(*arguments, cpu=cpu, default=default)


@contextlib.contextmanager
def trace_for(platform: str) -> Generator[None, None, None]:
    """Traces programs within it for this kind of device, such as "cpu" or "gpu"."""
    token = _platform.set(platform)
    try:
        yield
    finally:
        _platform.reset(token)


def is_cpu() -> bool:
    """Returns whether programs are traced for a CPU: by `trace_for`, or else by JAX's default device."""
    return (_platform.get() or jax.default_backend()) == "cpu"


@functools.cache
def has_only_cpus() -> bool:
    """Returns whether this process can compute on CPUs alone."""
    return jax.default_backend() == "cpu" and (getattr(jax.config, "jax_platforms", None) or "cpu") == "cpu"

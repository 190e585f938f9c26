"""Computations that CPUs and other devices have in forms of their own."""

import functools
from collections.abc import Callable
from typing import Any

import jax


def by_platform(*arguments: Any, cpu: Callable[..., Any], default: Callable[..., Any]) -> Any:
    """Returns what the form of the platform makes of the arguments, as `jax.lax.platform_dependent`.

    That traces every form. Where JAX has CPUs alone, only theirs is traced: a sixth to a quarter of the time until a
    program is compiled. Such a process lowers the CPU's form for other platforms, too; it has the same values there.

    Args:
        arguments: pytrees of arrays.
        cpu: the form for CPUs.
        default: the form for other devices; a result of the same shapes and dtypes.
    """
    if has_only_cpus():
        return cpu(*arguments)
    return jax.lax.platform_dependent(*arguments, cpu=cpu, default=default)


@functools.cache
def has_only_cpus() -> bool:
    """Returns whether this process can compute on CPUs alone."""
    return jax.default_backend() == "cpu" and (getattr(jax.config, "jax_platforms", None) or "cpu") == "cpu"

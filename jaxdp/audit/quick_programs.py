"""Compiles programs quickly, because compiling takes most of the time of an audit."""

import functools
from collections.abc import Callable
from typing import Any

import jax

UNOPTIMISED: dict[str, Any] = {"xla_backend_optimization_level": 0}
OPTIMISED: dict[str, Any] = {"xla_backend_optimization_level": 3}
ON_CPU: dict[str, Any] = {"xla_cpu_parallel_codegen_split_count": 1}
ON_OLDER_CPU: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False}  # JAX 0.12 no longer has this option


@functools.cache
def quick_options(*, runs_long: bool = False) -> dict[str, Any]:
    """Returns compiler options with which the default backend compiles a program quickly.

    On a CPU, a `runs_long` program takes about 0.6 times the default time to compile, and the default time to run.
    """
    if jax.default_backend() != "cpu":
        return {} if runs_long else UNOPTIMISED
    options = (OPTIMISED if runs_long else UNOPTIMISED) | ON_CPU
    try:
        jax.jit(lambda: 0).lower().compile(options | ON_OLDER_CPU)
    except jax.errors.JaxRuntimeError:
        return options
    return options | ON_OLDER_CPU


def jit_quickly(function: Callable[..., Any], *, runs_long: bool = False, **options: Any) -> Callable[..., Any]:
    """Wraps a function by `jax.jit` with `options`; on a CPU, the function is compiled with `quick_options`."""

    @functools.cache
    def program() -> Callable[..., Any]:  # created at the first call, because an import must not start JAX
        compiler_options = quick_options(runs_long=runs_long) if jax.default_backend() == "cpu" else None
        return jax.jit(function, compiler_options=compiler_options, **options)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return program()(*arguments)

    return call

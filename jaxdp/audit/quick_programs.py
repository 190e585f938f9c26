"""Compiles programs quickly, because compiling takes most of the time of an audit."""

import functools
from collections.abc import Callable
from typing import Any

import jax
from jax.extend.core import Jaxpr

UNOPTIMISED: dict[str, Any] = {"xla_backend_optimization_level": 0}
OPTIMISED: dict[str, Any] = {"xla_backend_optimization_level": 3}
ON_CPU: dict[str, Any] = {"xla_cpu_parallel_codegen_split_count": 1}
ON_OLDER_CPU: dict[str, Any] = {"xla_cpu_use_fusion_emitters": False}  # JAX 0.12 no longer has this option
WITHOUT_YNN: dict[str, Any] = {"xla_cpu_experimental_ynn_fusion_type": ""}  # YNN is a library of kernels, also for sums
LOOPS, SUMS = ("while", "scan"), ("reduce_sum", "dot_general")


@functools.cache
def quick_options(*, runs_long: bool = False, without_ynn: bool = False) -> dict[str, Any]:
    """Returns compiler options with which the default backend compiles a program quickly.

    On a CPU, a `runs_long` program takes about 0.6 times the default time to compile, and the default time to run.
    `without_ynn` is for programs with `sums_in_inner_loops`.
    """
    if jax.default_backend() != "cpu":
        return {} if runs_long else UNOPTIMISED
    options = (OPTIMISED if runs_long else UNOPTIMISED) | ON_CPU
    for option in (ON_OLDER_CPU, WITHOUT_YNN if without_ynn else {}):
        try:
            jax.jit(lambda: 0).lower().compile(options | option)
        except jax.errors.JaxRuntimeError:  # this version of XLA does not have the option
            continue
        options = options | option
    return options


def sums_in_inner_loops(function: Callable[..., Any], *arguments: Any) -> bool:
    """Returns whether a function sums numbers in a loop inside another loop.

    Such sums are short if outputs are small. XLA's YNN kernels then take two to four times as long as XLA's own loops.
    In other programs YNN may be faster, because without it some fusions compute the same numbers several times.
    """
    return _sums_in_loops(jax.make_jaxpr(jax.jit(function))(*arguments).jaxpr, 2)


def _sums_in_loops(jaxpr: Jaxpr, depth: int) -> bool:
    """Returns whether a sum lies in at least `depth` loops, one inside the other."""
    for equation in jaxpr.eqns:
        name = equation.primitive.name
        if depth <= 0 and name in SUMS:
            return True
        for value in equation.params.values():
            for inner in value if isinstance(value, tuple | list) else (value,):
                body = getattr(inner, "jaxpr", inner)
                if isinstance(body, Jaxpr) and _sums_in_loops(body, depth - (name in LOOPS)):
                    return True
    return False


def jit_quickly(
    function: Callable[..., Any], *, runs_long: bool = False, without_ynn: bool = False, **options: Any
) -> Callable[..., Any]:
    """Wraps a function of positional arguments by `jax.jit` with `options`; on a CPU, also with `quick_options`."""

    @functools.cache
    def program() -> Callable[..., Any]:  # created at the first call, because an import must not start JAX
        on_cpu = jax.default_backend() == "cpu"
        compiler_options = quick_options(runs_long=runs_long, without_ynn=without_ynn) if on_cpu else None
        return jax.jit(function, compiler_options=compiler_options, **options)

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        return program()(*arguments)

    return call

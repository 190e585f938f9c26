"""Checks, from a trace and without a GPU, that a program lowers for a GPU and has no operations unsuitable for it."""

import math
import re
from collections.abc import Collection
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.numerics.equations import equations
from jaxdp.testing.equations import location_of

# Prefixes of the calls that CUDA supports, such as the calls of cuSOLVER, of cuBLAS and of the GPU's Threefry.
OF_CUDA = ("cu", "Sharding", "annotate_device_placement", "xla.gpu")


def check_for_gpu(trace: Any, allowed: Collection[str] = ()) -> None:
    """Checks that a traced program lowers for CUDA, without operations that are slow, inexact or random on a GPU.

    `trace` is the result of `jax.jit(...).trace(...)`. `allowed` has names of calls that are permitted although CUDA
    does not have them.
    """
    for equation in equations(trace.jaxpr):
        fault = _fault(equation)
        assert not fault, (
            f"a program for a GPU must have no {fault}, got {equation.primitive.name}{location_of(equation)}"
        )
    calls = foreign_calls(trace) - {*allowed}
    assert not calls, f"a program for a GPU must call nothing that only a CPU has, got {', '.join(sorted(calls))}"


def foreign_calls(trace: Any) -> set[str]:
    """Lowers a program for CUDA, and returns the names of its calls that do not belong to CUDA."""
    text = trace.lower(lowering_platforms=("cuda",)).as_text()
    called = set(re.findall(r"custom_call @([\w.$]+)", text)) | set(re.findall(r'call_target_name = "([^"]+)"', text))
    return {name for name in called if not name.startswith(OF_CUDA)}


def _fault(equation: Any) -> str:
    name, params = equation.primitive.name, equation.params
    is_float = any(
        jnp.issubdtype(var.aval.dtype, jnp.floating) for var in equation.outvars if hasattr(var.aval, "dtype")
    )
    if "callback" in name:
        return "call of Python, for which it waits every time"
    if name == "dot_general" and is_float:
        precisions = params["precision"]
        pair = precisions if isinstance(precisions, tuple) else (precisions, precisions)
        if any(precision is not jax.lax.Precision.HIGHEST for precision in pair):
            return "product whose factors are rounded (its precision is not HIGHEST)"
    if name in ("scatter-add", "scatter_add", "scatter_mul") and is_float and not params["unique_indices"]:
        indices, batch = equation.invars[1].aval.shape, params["dimension_numbers"].scatter_indices_batching_dims
        if math.prod(size for axis, size in enumerate(indices[:-1]) if axis not in batch) > 1:
            return "sum of floats into places that may be the same, whose order is random"
    return ""

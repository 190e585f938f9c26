"""Carries options of JAX that change numbers, and that a `with` block may set, to other threads and processes."""

import contextlib
from collections.abc import Iterator, Mapping
from typing import Any

import jax

# Each is a context manager of `jax`, and with the prefix "jax_" an attribute of `jax.config`.
OPTIONS = (
    "enable_x64",
    "default_matmul_precision",
    "default_prng_impl",
    "threefry_partitionable",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
)


def current_options() -> dict[str, Any]:
    """Returns the values of `OPTIONS` in this thread, which can be pickled."""
    return {name: getattr(jax.config, f"jax_{name}") for name in OPTIONS}


@contextlib.contextmanager
def set_options(options: Mapping[str, Any]) -> Iterator[None]:
    """Sets options, a result of `current_options`, for the code of a `with` block in this thread."""
    with contextlib.ExitStack() as stack:
        for name, value in options.items():
            stack.enter_context(getattr(jax, name)(value))
        yield

"""Computes matrix products in simulations at full precision."""

import functools
from collections.abc import Callable
from typing import Any

import jax


def with_full_products(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a function that computes matrix products without rounding the factors, on any device.

    By default a GPU rounds float32 factors to ten bits (TF32). The setting also applies to users' code and to
    libraries.
    """

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments)

    return call

"""Full-precision products of matrices in simulations."""

import functools
from collections.abc import Callable
from typing import Any

import jax


def with_full_products(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function, traced so that no device rounds the factors of matrix products.

    By default a GPU rounds float32 factors to ten bits (TF32), also in a user's own code and in libraries.
    """

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments)

    return call

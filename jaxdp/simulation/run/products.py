"""Products of matrices in a simulation keep all digits of their factors."""

import functools
from collections.abc import Callable
from typing import Any

import jax


def with_full_products(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns the function, traced so that no device rounds the factors of a product of matrices.

    A GPU would by default, also in a user's own code and in libraries: float32 to ten bits (TF32).
    """

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        with jax.default_matmul_precision("highest"):
            return function(*arguments)

    return call

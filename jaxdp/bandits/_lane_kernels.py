"""Compiles the formulas of learners as separate XLA kernels on CPU.

For at most 16 arms, the arrays of a kernel are contiguous along the batch axis of `jax.vmap`. On other devices the
formulas run unchanged. Tests check that the results of a formula and its kernel are the same, bit for bit. Where a
compiler may fuse a product and a sum, the results are the same up to rounding.
"""

from collections.abc import Callable

import jax

from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.kernels import avoid_xla_tiling, lanes_last, own_kernel


def array_kernel(formula: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Returns a function that computes the formula in one kernel. Inputs are arrays [num_arms] and scalars."""

    def inside(*inputs):
        return lanes_last(avoid_xla_tiling(formula(*jax.tree.map(lanes_last, inputs))))

    return lambda *inputs: own_kernel(inside, *inputs)


def sum_kernels(formula: Callable[..., Sum]) -> Callable[..., Sum]:
    """Returns a function that computes a formula for a compensated sum, in one kernel for each of its two arrays.

    A kernel returns only one array. Computing the common parts in both kernels is faster than storing them.
    """

    def inside(*inputs):
        computed = formula(*jax.tree.map(lanes_last, inputs))
        return jax.tree.map(lambda array: lanes_last(avoid_xla_tiling(array)), computed)

    return lambda *inputs: Sum(*(own_kernel(lambda *array, i=i: inside(*array)[i], *inputs) for i in range(2)))

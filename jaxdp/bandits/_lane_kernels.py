"""Compiles formulas of learners as separate XLA kernels on CPU.

For up to 16 arms, a kernel's arrays are contiguous along the lanes of `jax.vmap`. On other devices the formula runs
unchanged. Tests check that results are the same: bit for bit, or up to rounding where a compiler may fuse a product and
a sum.
"""

from collections.abc import Callable

import jax

from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.kernels import avoid_xla_tiling, lanes_last, own_kernel


def array_kernel(formula: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Returns a function that computes the formula in one kernel: from arrays [num_arms] and numbers, to one array."""

    def inside(*inputs):
        return lanes_last(avoid_xla_tiling(formula(*jax.tree.map(lanes_last, inputs))))

    return lambda *inputs: own_kernel(inside, *inputs)


def sum_kernels(formula: Callable[..., Sum]) -> Callable[..., Sum]:
    """Returns a function that computes the formula, a compensated sum, by two kernels: for the total and the excess.

    A kernel returns only one array. Computing the common parts twice is faster than storing them.
    """

    def inside(*inputs):
        computed = formula(*jax.tree.map(lanes_last, inputs))
        return jax.tree.map(lambda array: lanes_last(avoid_xla_tiling(array)), computed)

    return lambda *inputs: Sum(*(own_kernel(lambda *array, i=i: inside(*array)[i], *inputs) for i in range(2)))

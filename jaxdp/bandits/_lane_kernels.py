"""Formulas as separate kernels for XLA on CPU: for up to 16 arms, the lanes of `jax.vmap` are the fast axis.

Each function makes a kernel from a formula in a learner's file, so each formula is written only once. On other devices
the formula runs as it is. Tests check that results are the same: bit for bit, or up to rounding where a compiler may
fuse a product and a sum.
"""

from collections.abc import Callable

import jax

from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.kernels import avoid_xla_tiling, lanes_last, own_kernel


def array_kernel(formula: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Returns the formula as a kernel: inputs are arrays [num_arms] and numbers, the result is one array."""

    def inside(*inputs):
        return lanes_last(avoid_xla_tiling(formula(*jax.tree.map(lanes_last, inputs))))

    return lambda *inputs: own_kernel(inside, *inputs)


def sum_kernels(formula: Callable[..., Sum]) -> Callable[..., Sum]:
    """Returns two kernels for a formula that computes a compensated sum, as one function.

    A kernel returns one array, so the total and the excess need two kernels. Doing their common work twice is faster
    than storing its result.
    """

    def inside(*inputs):
        computed = formula(*jax.tree.map(lanes_last, inputs))
        return jax.tree.map(lambda array: lanes_last(avoid_xla_tiling(array)), computed)

    return lambda *inputs: Sum(*(own_kernel(lambda *array, i=i: inside(*array)[i], *inputs) for i in range(2)))

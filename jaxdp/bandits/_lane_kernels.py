"""Formulas as separate kernels, laid out for XLA on CPU: for up to 16 arms, the lanes of `jax.vmap` are the fast axis.

A kernel is built from the plain formula in a learner's file, so each formula is written only once. On other devices the
plain formula runs. Tests check that results are the same: bit for bit, or up to rounding where a compiler may fuse a
product and a sum.
"""

from collections.abc import Callable

import jax

from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.kernels import avoid_xla_tiling, lanes_last, own_kernel


def array_kernel(formula: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """Returns a formula as a kernel: its inputs are arrays [num_arms] and numbers, its result is one array."""

    def inside(*inputs):
        return lanes_last(avoid_xla_tiling(formula(*jax.tree.map(lanes_last, inputs))))

    return lambda *inputs: own_kernel(inside, *inputs)


def sum_kernels(formula: Callable[..., Sum]) -> Callable[..., Sum]:
    """Returns a formula that computes a compensated sum as two kernels.

    A kernel returns one array. Two kernels that both do the common work are faster than storing its result.
    """

    def inside(*inputs):
        computed = formula(*jax.tree.map(lanes_last, inputs))
        return jax.tree.map(lambda array: lanes_last(avoid_xla_tiling(array)), computed)

    return lambda *inputs: Sum(*(own_kernel(lambda *array, i=i: inside(*array)[i], *inputs) for i in range(2)))

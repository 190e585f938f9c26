"""Formulas as kernels of their own, laid out for XLA on CPU: up to 16 arms, lanes of `jax.vmap` are the fast axis.

A kernel is made from the plain formula that a learner's own file has, so there is no second formula to read. On other
devices the formula stays as it is. Results are tested to be the same ones: bit for bit, or up to rounding where a
compiler may round a product and a sum as one.
"""

from collections.abc import Callable

import jax

from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.kernels import in_vectors, lanes_last, own_kernel


def array_kernel(formula: Callable[..., jax.Array]) -> Callable[..., jax.Array]:
    """The formula, of arrays [num_arms] and numbers, whose result is one array, as a kernel."""

    def inside(*inputs):
        return lanes_last(in_vectors(formula(*jax.tree.map(lanes_last, inputs))))

    return lambda *inputs: own_kernel(inside, *inputs)


def sum_kernels(formula: Callable[..., Sum]) -> Callable[..., Sum]:
    """The formula, whose result is a compensated sum, as two kernels.

    A kernel gives one array: two kernels that do the same are faster than what both need, stored.
    """

    def inside(*inputs):
        found = formula(*jax.tree.map(lanes_last, inputs))
        return jax.tree.map(lambda each: lanes_last(in_vectors(each)), found)

    return lambda *inputs: Sum(*(own_kernel(lambda *each, i=i: inside(*each)[i], *inputs) for i in range(2)))

"""The steps of `_shares`, in a layout for XLA on CPU.

Each result that several other results use has a separate kernel, so that it is computed only once. With at most 1,024
experts (if there are more than 16, only with at least 32 lanes), the `jax.vmap` batch axis is contiguous in memory (the
fast axis, see `lanes_last_if_many`). Sums over at most 16 experts are unrolled. Sums over more experts add rows of 16;
above `LARGEST_UNROLLED`, they are XLA reductions. Tests check that results equal the results of the plain functions up
to the order of additions.
"""

import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.experts._scaled import GENTLE_TERMS, expm1_near_0
from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.kernels import MAX_UNROLLED, avoid_xla_tiling, lanes_last_if_many, own_kernel
from jaxdp.random.choice import LARGEST_UNROLLED

REDUCTIONS = {jnp.minimum: jnp.min, jnp.maximum: jnp.max, operator.add: jnp.sum}


def kernel(function: Callable[..., jax.Array], *inputs: Any) -> jax.Array:
    """Computes function(*inputs) in a separate kernel; the batch axis is the fast axis (see `lanes_last_if_many`)."""

    def inside(*inputs):
        return lanes_last_if_many(avoid_xla_tiling(function(*map(lanes_last_if_many, inputs))))

    return lanes_last_if_many(own_kernel(inside, *(lanes_last_if_many(jnp.asarray(array)) for array in inputs)))


def fold(operation: Callable[[Any, Any], Any], of: Callable[..., jax.Array], *inputs: Any) -> jax.Array:
    """Applies the elementwise function `of` to the inputs, and reduces the result by an operation in `REDUCTIONS`.

    Inputs are arrays [n] or [1, n], or numbers []. The operation reduces the array of(*inputs) of shape [n] to a number
    [].
    """
    size = max(array.shape[-1] for array in inputs if jnp.ndim(array))

    def fold_all(*inputs):
        return functools.reduce(operation, [of(*inputs)[i] for i in range(size)])

    if size <= MAX_UNROLLED:
        return kernel(fold_all, *inputs)
    if size > LARGEST_UNROLLED:
        return own_kernel(lambda *inputs: REDUCTIONS[operation](of(*inputs)), *inputs)
    if size > MAX_UNROLLED**2 and of is not take:  # with `of` once for each slice, compilation would be slow
        return fold(operation, take, kernel(of, *inputs))
    remainder = size % MAX_UNROLLED

    def columns(*inputs):
        # Inputs are sliced first, because XLA would store of(*inputs) in another order of axes.
        parts = [of(*_slice(inputs, start, start + MAX_UNROLLED)) for start in range(0, size - remainder, MAX_UNROLLED)]
        return functools.reduce(operation, parts)

    def last(reduced, *inputs):
        values = of(*_slice(inputs, size - remainder, size)) if remainder else reduced[:0]
        return functools.reduce(
            operation, [*(reduced[i] for i in range(MAX_UNROLLED)), *(values[i] for i in range(remainder))]
        )

    return kernel(last, kernel(columns, *inputs), *(inputs if remainder else ()))


def take(values: jax.Array) -> jax.Array:
    """Returns its argument, for use in `fold`."""
    return values


def _slice(arrays: Sequence[Any], start: int, stop: int) -> list[Any]:
    """Returns entries `start` to `stop` - 1 of each array's last axis; numbers are returned unchanged."""
    return [array[..., start:stop] if jnp.ndim(array) else array for array in arrays]


def exponential_step(shares: jax.Array, scaled_losses: jax.Array) -> jax.Array:
    """Multiplies shares ([n]) by exp(-scaled_losses), and normalises them to sum 1."""
    grown, scale = _grow(shares, scaled_losses)
    return kernel(operator.mul, grown, scale)


def fixed_share_step(shares: jax.Array, scaled_losses: jax.Array, switch_rate: jax.Array) -> jax.Array:
    """Updates shares ([n]) by losses; then each share passes the fraction `switch_rate` equally to all others."""
    grown, scale = _grow(shares, scaled_losses)

    def mix(grown, scale, switch_rate):
        after_losses = grown * scale
        return (1 - switch_rate) * after_losses + switch_rate / (len(shares) - 1) * (1 - after_losses)

    return kernel(mix, grown, scale, switch_rate)


def exact_fixed_share_step(shares: Sum, scaled_losses: jax.Array, switch_rate: jax.Array) -> Sum:
    """Computes `fixed_share_step` on compensated shares ([n]), so that rounding errors do not accumulate.

    The arguments are the same as in `fixed_share_step`. In float32, scaled losses must differ by at most 1/8.
    """
    smallest = fold(jnp.minimum, take, scaled_losses)

    def gain(total, excess, losses, smallest):
        return (total - excess) * expm1_near_0(smallest - losses, GENTLE_TERMS)

    gained = kernel(gain, *shares, scaled_losses, smallest)
    old_sum = fold(operator.add, operator.sub, *shares)
    gained_sum = fold(operator.add, take, gained)

    def after(total, excess, gained, old_sum, gained_sum, switch_rate):
        before = total - excess
        growth = (old_sum - 1) + gained_sum
        absorbed = gained - (before + gained) * (growth / (1 + growth))
        after_losses = before + absorbed
        passed = switch_rate * ((1 - after_losses) / (len(before) - 1) - after_losses)
        return compensated.add(compensated.add(Sum(total, excess), absorbed), passed)

    inputs = (*shares, gained, old_sum, gained_sum, switch_rate)
    return Sum(
        kernel(lambda *arrays: after(*arrays).total, *inputs), kernel(lambda *arrays: after(*arrays).excess, *inputs)
    )


def read(shares: Sum) -> jax.Array:
    """Converts compensated shares to floats, [n]."""
    return kernel(operator.sub, *shares)


def odds(totals: Sum, learning_rate: jax.Array) -> jax.Array:
    """Returns the odds of exponential weights, exp(-learning_rate * (total - smallest total)), [n] float."""
    smallest = fold(jnp.minimum, take, totals.total)

    def weight(total, excess, smallest, learning_rate):
        return jnp.exp(-learning_rate * ((total - smallest) - excess))

    return kernel(weight, *totals, smallest, learning_rate)


def _grow(shares: jax.Array, scaled_losses: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns numbers ([n]) proportional to shares * exp(-scaled_losses), and the factor ([]) that normalises them."""
    smallest = fold(jnp.minimum, take, scaled_losses)
    grown = kernel(lambda shares, losses, low: shares * jnp.exp(low - losses), shares, scaled_losses, smallest)
    mass = fold(operator.add, take, grown)
    return grown, kernel(lambda mass: 1 / mass, mass)

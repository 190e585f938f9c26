"""The step of `_filter` for one row of many experts, laid out for XLA on CPU: each shared result is a kernel.

XLA on CPU makes slow loops of reductions of some hundred entries. Here a reduction adds columns, which a vector unit
does at once. Tests check that the step equals the plain step up to the order of sums.
"""

import operator

import jax
import jax.numpy as jnp

from jaxdp.experts._filter import _filter
from jaxdp.experts._filter._filter import Flow
from jaxdp.experts._scaled import Scaled, exp_minus, normalise, two_to
from jaxdp.experts._share_kernels import fold, kernel
from jaxdp.numerics.kernels import lanes_slow

draw, gains, odds_of = _filter.draw, _filter.gains, _filter.odds_of


def step(flow: Flow, sums: Scaled, scaled_losses: jax.Array) -> tuple[Scaled, jax.Array]:
    """Computes `_filter.step` for sums of one row."""
    dtype = sums.mantissa.dtype
    old_mantissa, old_power = (jnp.squeeze(array, 0) for array in sums)
    largest = fold(jnp.maximum, lambda power: power, old_power)
    change = kernel(lambda losses: exp_minus(losses)[0], scaled_losses)
    mantissa = kernel(lambda mantissa, change: mantissa + mantissa * change, old_mantissa, change)
    power = kernel(
        lambda power, losses, largest: power - largest + exp_minus(losses)[1], old_power, scaled_losses, largest
    )
    if flow.odds is None:
        return _one_row(normalise(mantissa, power)), largest
    odds = jnp.asarray(flow.odds, dtype)[0]
    top = fold(jnp.maximum, lambda power: power, power)
    is_alone = fold(operator.add, lambda power, top: (power == top).astype(jnp.int32), power, top) == 1
    # In one row every entry receives a part of the row's total, so entries below 2^-126 of the largest have no effect.
    share = kernel(lambda mantissa, power, top: mantissa * two_to(power - top, dtype), mantissa, power, top)
    total = fold(operator.add, lambda share: share, share)

    def below(share, power, top, is_alone):
        return jnp.where((power == top) & is_alone, 0, share)

    second_sum = fold(operator.add, below, share, power, top, is_alone)

    def after(share, power, top, is_alone, total, second_sum):
        is_out = (power == top) & is_alone
        return normalise(share + odds * jnp.where(is_out, second_sum, total - share), top)

    inputs = (share, power, top, is_alone, total, second_sum)
    scaled = Scaled(*(kernel(lambda *arrays, i=i: after(*arrays)[i], *inputs) for i in range(2)))
    return _one_row(scaled), largest


def columns(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Computes `_filter.columns` for sums of one row; the outlook has no effect."""
    del outlook
    mantissa, power = (jnp.squeeze(array, 0) for array in sums)
    top = fold(jnp.maximum, lambda power: power, power)

    def share(mantissa, power, top):
        return mantissa * two_to(power - top, mantissa.dtype)

    total = fold(operator.add, share, mantissa, power, top)
    return kernel(lambda *arrays: share(*arrays[:3]) / arrays[3], mantissa, power, top, total)


def _one_row(values: Scaled) -> Scaled:
    return jax.tree.map(lambda array: lanes_slow(array[None]), values)

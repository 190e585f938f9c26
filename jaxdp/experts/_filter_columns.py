"""The step of `_filter` for one row of many experts, laid out for XLA on CPU: what experts share is a kernel each.

XLA on CPU makes slow loops of reductions of some hundred entries; here these are sums of columns, which a vector unit
adds at once. The step is tested to be equal to the plain one up to the order of sums.
"""

import operator

import jax
import jax.numpy as jnp

from jaxdp.experts import _filter
from jaxdp.experts._filter import Flow
from jaxdp.experts._scaled import NOTHING, Scaled, exp_minus, normalised, two_to
from jaxdp.experts._share_kernels import fold
from jaxdp.numerics.kernels import own_kernel

drawn, gains = _filter.drawn, _filter.gains


def step(flow: Flow, sums: Scaled, scaled_losses: jax.Array) -> tuple[Scaled, jax.Array]:
    """`_filter.step`, of sums of one row."""
    dtype = sums.mantissa.dtype
    largest = fold(jnp.maximum, lambda power: power, sums.power[0])
    change = own_kernel(lambda losses: exp_minus(losses)[0], scaled_losses)
    mantissa = own_kernel(lambda mantissa, change: mantissa + mantissa * change, sums.mantissa[0], change)
    power = own_kernel(
        lambda power, losses, largest: power - largest + exp_minus(losses)[1], sums.power[0], scaled_losses, largest
    )
    if flow.odds is None:
        return _one_row(normalised(mantissa, power)), largest
    odds = jnp.asarray(flow.odds, dtype)[0]
    top = fold(jnp.maximum, lambda power: power, power)
    is_alone = fold(operator.add, lambda power, top: (power == top).astype(jnp.int32), power, top) == 1
    total = fold(operator.add, lambda mantissa, power, top: mantissa * two_to(power - top, dtype), mantissa, power, top)

    def lowered(power, top, is_alone):
        return jnp.where((power == top) & is_alone, NOTHING - 2, power)

    second = fold(jnp.maximum, lowered, power, top, is_alone)

    def below(mantissa, power, top, is_alone, second):
        part = mantissa * two_to(jnp.minimum(power - second, 0), dtype)
        return jnp.where((power == top) & is_alone, 0, part)

    rest = fold(operator.add, below, mantissa, power, top, is_alone, second)

    def after(mantissa, power, top, is_alone, second, total, rest):
        is_out = (power == top) & is_alone
        came = odds * jnp.where(is_out, rest, total - mantissa * two_to(power - top, dtype))
        came_power = jnp.where(is_out, second, top)
        higher = jnp.maximum(power, came_power)
        added = mantissa * two_to(power - higher, dtype) + came * two_to(came_power - higher, dtype)
        return normalised(added, higher)

    inputs = (mantissa, power, top, is_alone, second, total, rest)
    found = Scaled(*(own_kernel(lambda *each, i=i: after(*each)[i], *inputs) for i in range(2)))
    return _one_row(found), largest


def columns(sums: Scaled, outlook: Scaled) -> jax.Array:
    """`_filter.columns`, of sums of one row, to which its outlook does nothing."""
    del outlook
    mantissa, power = sums.mantissa[0], sums.power[0]
    top = fold(jnp.maximum, lambda power: power, power)

    def share(mantissa, power, top):
        return mantissa * two_to(power - top, mantissa.dtype)

    total = fold(operator.add, share, mantissa, power, top)
    return own_kernel(lambda *each: share(*each[:3]) / each[3], mantissa, power, top, total)


def _one_row(values: Scaled) -> Scaled:
    return jax.tree.map(lambda each: each[None], values)

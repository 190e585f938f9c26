"""The step of `_filter` for one row of many experts, laid out for XLA on CPU: what experts share is a kernel each.

XLA on CPU makes slow loops of reductions of some hundred entries; here these are sums of columns, which a vector unit
adds at once. The step is tested to be equal to the plain one up to the order of sums.
"""

import operator

import jax
import jax.numpy as jnp

from jaxdp.experts._filter import _filter
from jaxdp.experts._filter._filter import Flow
from jaxdp.experts._scaled import Scaled, exp_minus, normalise, two_to
from jaxdp.experts._share_kernels import fold, kernel
from jaxdp.numerics.kernels import lanes_slow

draw, gains = _filter.draw, _filter.gains


def step(flow: Flow, sums: Scaled, scaled_losses: jax.Array) -> tuple[Scaled, jax.Array]:
    """`_filter.step`, of sums of one row."""
    dtype = sums.mantissa.dtype
    old_mantissa, old_power = (jnp.squeeze(each, 0) for each in sums)
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
    # Of one row all come to at least a part of the whole: what is below 2^-126 of the largest makes no difference.
    share = kernel(lambda mantissa, power, top: mantissa * two_to(power - top, dtype), mantissa, power, top)
    total = fold(operator.add, lambda share: share, share)

    def below(share, power, top, is_alone):
        return jnp.where((power == top) & is_alone, 0, share)

    rest = fold(operator.add, below, share, power, top, is_alone)

    def after(share, power, top, is_alone, total, rest):
        is_out = (power == top) & is_alone
        return normalise(share + odds * jnp.where(is_out, rest, total - share), top)

    inputs = (share, power, top, is_alone, total, rest)
    found = Scaled(*(kernel(lambda *each, i=i: after(*each)[i], *inputs) for i in range(2)))
    return _one_row(found), largest


def columns(sums: Scaled, outlook: Scaled) -> jax.Array:
    """`_filter.columns`, of sums of one row, to which its outlook does nothing."""
    del outlook
    mantissa, power = (jnp.squeeze(each, 0) for each in sums)
    top = fold(jnp.maximum, lambda power: power, power)

    def share(mantissa, power, top):
        return mantissa * two_to(power - top, mantissa.dtype)

    total = fold(operator.add, share, mantissa, power, top)
    return kernel(lambda *each: share(*each[:3]) / each[3], mantissa, power, top, total)


def _one_row(values: Scaled) -> Scaled:
    return jax.tree.map(lambda each: lanes_slow(each[None]), values)

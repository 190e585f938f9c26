"""The step of `_filter` for a single row with many experts, in a layout for XLA on CPU.

Each result that several other results use has a separate kernel, so that it is computed only once. `fold` combines
slices of 16 entries by vector instructions, because XLA on CPU compiles a reduction of a few hundred entries to a slow
loop. Tests check that the step equals `_filter.step` up to the order of additions.
"""

import operator

import jax
import jax.numpy as jnp

from jaxdp.experts._filter import _filter
from jaxdp.experts._filter._filter import Flow
from jaxdp.experts._scaled import Scaled, exp_minus, normalise, two_to
from jaxdp.experts._share_kernels import fold, kernel, take

draw, gains, odds_of = _filter.draw, _filter.gains, _filter.odds_of


def step(flow: Flow, sums: Scaled, scaled_losses: jax.Array) -> tuple[Scaled, jax.Array]:
    """Applies losses and switches to the sums of one row; returns the new sums divided by 2^k, and k.

    `scaled_losses`, [num_experts], are learning_rate * losses. k is the largest power in `sums`.
    """
    dtype = sums.mantissa.dtype
    # The row is extracted inside kernels, because XLA would copy it otherwise.
    largest = fold(jnp.maximum, lambda power: power[0], sums.power)
    change = kernel(lambda losses: exp_minus(losses)[0], scaled_losses)
    mantissa = kernel(lambda mantissa, change: mantissa[0] + mantissa[0] * change, sums.mantissa, change)
    power = kernel(
        lambda power, losses, largest: power[0] - largest + exp_minus(losses)[1], sums.power, scaled_losses, largest
    )
    if flow.odds is None:
        return Scaled(
            *(kernel(lambda *arrays, i=i: normalise(*arrays)[i][None], mantissa, power) for i in range(2))
        ), largest
    odds = jnp.asarray(flow.odds, dtype)[0]
    top = fold(jnp.maximum, take, power)
    has_one_top = fold(operator.add, lambda power, top: (power == top).astype(jnp.int32), power, top) == 1
    # Every entry receives a part of the row's total, so entries below 2^-126 times the largest entry have no effect.
    share = kernel(lambda mantissa, power, top: mantissa * two_to(power - top, dtype), mantissa, power, top)
    total = fold(operator.add, take, share)

    def share_without_top(share, power, top, has_one_top):
        return jnp.where((power == top) & has_one_top, 0, share)

    # If a single entry has the largest power, total - share would cancel for it, so the other entries are summed again.
    second_sum = fold(operator.add, share_without_top, share, power, top, has_one_top)

    def add_inflow(share, power, top, has_one_top, total, second_sum):
        is_only_top = (power == top) & has_one_top
        return normalise(share + odds * jnp.where(is_only_top, second_sum, total - share), top)

    inputs = (share, power, top, has_one_top, total, second_sum)
    return Scaled(*(kernel(lambda *arrays, i=i: add_inflow(*arrays)[i][None], *inputs) for i in range(2))), largest


def columns(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Returns the distribution of the expert ([num_experts] float), which is the normalised sums of the single row.

    The outlook is not used, because it is a common factor of all entries.
    """
    del outlook
    top = fold(jnp.maximum, lambda power: power[0], sums.power)

    def share(mantissa, power, top):
        return mantissa[0] * two_to(power[0] - top, mantissa.dtype)

    total = fold(operator.add, share, *sums, top)
    return kernel(lambda *arrays: share(*arrays[:3]) / arrays[3], *sums, top, total)

"""The step of `_filter` in a layout for XLA on CPU: lanes are contiguous in memory; sums over experts are unrolled.

XLA on CPU compiles one loop for every result of a kernel, and this loop computes everything that the result needs. So
each result that several other results use has a separate kernel here, and nothing is computed more than twice. Tests
check that the step equals the plain step up to the order of additions.
"""

import functools
import operator
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.experts._filter._filter import Flow, log_gain
from jaxdp.experts._scaled import NOTHING, Scaled, exp_minus, normalise, two_to
from jaxdp.numerics.kernels import MAX_UNROLLED, avoid_xla_tiling, lanes_last, own_kernel
from jaxdp.random.choice import inline_index_at

MOST = MAX_UNROLLED  # maximum number of experts or rows for which loops are unrolled


def step(flow: Flow, sums: Scaled, scaled_losses: jax.Array) -> tuple[Scaled, jax.Array]:
    """Applies losses and switches to sums; returns the new sums divided by 2^k, and k.

    `scaled_losses`, [num_experts], are learning_rate * losses. k is the largest power in `sums`. If
    `flow.row_step` is 1, all `flow.odds` must be 1.
    """
    mantissa, power = lanes_last(sums.mantissa), lanes_last(sums.power)
    change = _kernel(lambda losses: exp_minus(losses)[0], scaled_losses)
    largest = _kernel(lambda power: _fold(jnp.maximum, _fold(jnp.maximum, power)), power)
    shift = _kernel(lambda losses, largest: exp_minus(losses)[1] - largest, scaled_losses, largest)
    if flow.odds is None:
        after = _kernel(lambda mantissa, change: mantissa + mantissa * change[None], mantissa, change)
        powers = _kernel(lambda after, power, shift: normalise(after, power + shift[None]).power, after, power, shift)
        return Scaled(_kernel(_mantissa, after), powers), largest
    top = _kernel(lambda power, shift: _fold(jnp.maximum, power + shift[None]), power, shift)
    has_one_top = _kernel(_has_one_top, power, shift, top)
    second = _kernel(_second, power, shift, top, has_one_top)
    total = _kernel(_total, mantissa, power, change, shift, top)
    second_sum = _kernel(_second_sum, mantissa, power, change, shift, top, has_one_top, second)
    after = _kernel(
        functools.partial(_after, flow), mantissa, power, change, shift, top, has_one_top, second, total, second_sum
    )
    powers = _kernel(functools.partial(_power_after, flow), power, shift, top, has_one_top, second, after)
    return Scaled(_kernel(_mantissa, after), powers), largest


def gains(sums: Scaled, scaled_losses: jax.Array) -> jax.Array:
    """Returns log2 of the factor by which losses scale each row's sum ([num_rows] float), up to a common constant."""
    mantissa, power = lanes_last(sums.mantissa), lanes_last(sums.power)
    above = _kernel(lambda losses: losses - _fold(jnp.minimum, losses), scaled_losses)
    relative_change = _kernel(lambda above: jnp.expm1(-above), above)
    change = _kernel(lambda above: exp_minus(above)[0], above)
    shift = _kernel(lambda above: exp_minus(above)[1], above)
    top = _kernel(lambda power: _fold(jnp.maximum, power), power)
    new_top = _kernel(lambda power, shift: _fold(jnp.maximum, power + shift[None]), power, shift)
    before = _kernel(lambda mantissa, power, top: _row_sums(mantissa, power, top), mantissa, power, top)
    row_change = _kernel(
        lambda mantissa, power, top, relative: _row_sums(mantissa * relative[None], power, top),
        mantissa,
        power,
        top,
        relative_change,
    )
    after = _kernel(_total, mantissa, power, change, shift, new_top)
    return _kernel(log_gain, row_change, before, after, new_top - top)


def columns(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Returns the distribution of the expert, [num_experts] float: sums * outlook, summed over rows and normalised."""
    odds = _columns(odds_of(sums, outlook)) if len(sums.power) > 1 else _odds_of_row(sums)
    total = _kernel(lambda odds: _fold(operator.add, odds), odds)
    return _kernel(operator.truediv, odds, total)


def draw(uniforms: jax.Array, sums: Scaled, outlook: Scaled) -> tuple[jax.Array, jax.Array]:
    """Draws an expert and a row ([] int32 each) with odds sums[row, expert] * outlook[row]; uses two uniforms ([2])."""
    odds = odds_of(sums, outlook)
    columns = _columns(odds)
    expert = _kernel(lambda uniforms, columns: inline_index_at(uniforms[0], list(columns)), uniforms, columns)
    column = _kernel(_column, odds, expert)
    return expert, _kernel(lambda uniforms, column: inline_index_at(uniforms[1], list(column)), uniforms, column)


def _columns(odds: jax.Array) -> jax.Array:
    return _kernel(lambda odds: functools.reduce(operator.add, list(odds)), odds)


def odds_of(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Returns sums[row, expert] * outlook[row] ([num_rows, num_experts] float) divided by about the largest product."""
    mantissa, power, ahead, ahead_power = (lanes_last(array) for array in (*sums, *outlook))
    power = _kernel(lambda power, ahead_power: power + ahead_power[:, None], power, ahead_power)
    peak = _kernel(lambda power: _fold(jnp.maximum, _fold(jnp.maximum, power)), power)
    return _kernel(_odds, mantissa, power, ahead, peak)


def _odds_of_row(sums: Scaled) -> jax.Array:
    """Computes `odds_of` ([num_experts] float) for sums with a single row and the outlook 1."""
    peak = _kernel(lambda power: _fold(jnp.maximum, power[0]), sums.power)
    return _kernel(lambda mantissa, power, peak: mantissa[0] * two_to(power[0] - peak, mantissa.dtype), *sums, peak)


def _odds(mantissa: jax.Array, power: jax.Array, ahead: jax.Array, peak: jax.Array) -> jax.Array:
    return mantissa * ahead[:, None] * two_to(power - peak, mantissa.dtype)


def _column(odds: jax.Array, expert: jax.Array) -> jax.Array:
    """Returns the odds of each row for one expert, [num_rows] float."""
    is_drawn = jnp.arange(odds.shape[1], dtype=jnp.int32) == expert
    return _fold(operator.add, jnp.where(is_drawn[None], odds, 0))


def _kernel(function: Callable[..., jax.Array], *inputs: Any) -> jax.Array:
    def inside(*inputs):
        return lanes_last(avoid_xla_tiling(function(*(lanes_last(array) for array in inputs))))

    return lanes_last(own_kernel(inside, *inputs))


def _fold(operation: Callable[..., jax.Array], values: jax.Array) -> jax.Array:
    """Reduces the last axis of `values` by a binary operation, unrolled over the entries."""
    return functools.reduce(operation, [values[..., j] for j in range(values.shape[-1])])


def _apply_losses(mantissa: jax.Array, power: jax.Array, change: jax.Array, shift: jax.Array) -> Scaled:
    return Scaled(mantissa + mantissa * change[None], power + shift[None])


def _has_one_top(power: jax.Array, shift: jax.Array, top: jax.Array) -> jax.Array:
    """Returns whether exactly one entry of `power` + `shift` is the row's largest power `top`, as [num_rows] bool."""
    is_top = power + shift[None] == top[:, None]
    return _fold(operator.add, is_top.astype(jnp.int32)) == 1


def _without_top(power: jax.Array, top: jax.Array, has_one_top: jax.Array) -> jax.Array:
    return jnp.where((power == top[:, None]) & has_one_top[:, None], NOTHING - 2, power)


def _second(power: jax.Array, shift: jax.Array, top: jax.Array, has_one_top: jax.Array) -> jax.Array:
    return _fold(jnp.maximum, _without_top(power + shift[None], top, has_one_top))


def _row_sums(mantissa, power, top) -> jax.Array:
    return _fold(operator.add, mantissa * two_to(power - top[:, None], mantissa.dtype))


def _total(mantissa, power, change, shift, top) -> jax.Array:
    return _row_sums(*_apply_losses(mantissa, power, change, shift), top)


def _second_sum(mantissa, power, change, shift, top, has_one_top, second) -> jax.Array:
    mantissa, power = _apply_losses(mantissa, power, change, shift)
    is_only_top = (power == top[:, None]) & has_one_top[:, None]
    parts = mantissa * two_to(jnp.minimum(power - second[:, None], 0), mantissa.dtype)
    return _fold(operator.add, jnp.where(is_only_top, 0, parts))


def _inflow(flow: Flow, values: jax.Array, first: float) -> jax.Array:
    """Returns, for each row, the `values` of the row from which weight flows into this row.

    If `flow.row_step` is 1, this is the previous row, and the result for the first row is `first`. Otherwise it is the
    row itself.
    """
    if not flow.row_step:
        return values
    return jnp.concatenate([jnp.full((1, *values.shape[1:]), first, values.dtype), values[:-1]])


def _inflow_power(flow: Flow, power, top, has_one_top, second) -> jax.Array:
    is_only_top = (power == top[:, None]) & has_one_top[:, None]
    return _inflow(flow, jnp.where(is_only_top, second[:, None], top[:, None]), NOTHING)


def _after(flow: Flow, mantissa, power, change, shift, top, has_one_top, second, total, second_sum) -> jax.Array:
    """Returns, for each entry, the remaining weight plus the inflow, divided by the larger of the two powers of two."""
    mantissa, power = _apply_losses(mantissa, power, change, shift)
    is_only_top = (power == top[:, None]) & has_one_top[:, None]
    at_top = mantissa * two_to(power - top[:, None], mantissa.dtype)
    inflow = jnp.where(is_only_top, second_sum[:, None], total[:, None] - at_top)
    if not flow.row_step:  # switches to the next row have odds 1
        inflow = inflow * jnp.asarray(flow.odds, mantissa.dtype)[:, None]
    inflow, inflow_power = _inflow(flow, inflow, 1), _inflow_power(flow, power, top, has_one_top, second)
    largest = jnp.maximum(power, inflow_power)
    return mantissa * two_to(power - largest, mantissa.dtype) + inflow * two_to(inflow_power - largest, mantissa.dtype)


def _power_after(flow: Flow, power, shift, top, has_one_top, second, after) -> jax.Array:
    power = power + shift[None]
    return normalise(after, jnp.maximum(power, _inflow_power(flow, power, top, has_one_top, second))).power


def _mantissa(after: jax.Array) -> jax.Array:
    return normalise(after, jnp.int32(0)).mantissa

"""Updates the weights of a class of sequences in a round: applies losses, and moves weight from expert to expert.

A row is a group of sequences that the class defines, such as all sequences with the same number of switches so far. For
each row and expert, `sums`, [num_rows, num_experts], has the sum of the weights of the row's sequences that are now at
this expert. The class also gives each row a factor, `outlook`, [num_rows]. A state (row, expert) has the odds sums[row,
expert] * outlook[row].

No term is negative, and every entry has a separate power of two (`Scaled`). Logarithms in float32 would lose small
differences that matter, and one power of two for a whole row would lose an entry that falls far below the others and
later grows again.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.experts._scaled import NOTHING, Scaled, exp_minus, normalise, nothing, plus, shares, two_to
from jaxdp.numerics.compensated import Sum
from jaxdp.random.choice import index_from_uniform


class Flow(NamedTuple):
    """The flow of weight that switches cause between experts.

    Attributes:
        odds: [num_rows] > 0 on the host: in each row, the prior odds of a switch to one particular other expert against
            staying; None if sequences never switch.
        row_step: 1 if a switch leads to the next row (no switch leaves the last row); 0 if a switch stays in its row.
    """

    odds: np.ndarray | None
    row_step: int


def step(flow: Flow, sums: Scaled, scaled_losses: jax.Array) -> tuple[Scaled, jax.Array]:
    """Multiplies sums by exp(-scaled_losses), moves weight as `flow` says, and divides all sums by a power of two, 2^k.

    Args:
        flow: the flow of weight.
        sums: [num_rows, num_experts].
        scaled_losses: [num_experts] float, learning_rate * losses.

    Returns:
        (the new sums, [num_rows, num_experts]; k, [] int32, the largest `power` in the first row of `sums`).
    """
    change, power = exp_minus(scaled_losses)
    largest = jnp.max(sums.power[0])
    # Products are not normalised to mantissas in [1, 2): the next steps accept mantissas of about this size.
    after = Scaled(sums.mantissa + sums.mantissa * change[None], sums.power - largest + power[None])
    if flow.odds is None:
        return normalise(*after), largest
    inflow = others(after)
    inflow = Scaled(inflow.mantissa * jnp.asarray(flow.odds, inflow.mantissa.dtype)[:, None], inflow.power)
    if flow.row_step:
        zeros = nothing((1, inflow.mantissa.shape[1]), inflow.mantissa.dtype)
        inflow = jax.tree.map(lambda first, later: jnp.concatenate([first, later[:-1]]), zeros, inflow)
    return plus(after, inflow), largest


def draw(uniforms: jax.Array, sums: Scaled, outlook: Scaled) -> tuple[jax.Array, jax.Array]:
    """Draws an expert and a row, [] int32 each, with odds sums[row, expert] * outlook[row], from two uniforms, [2]."""
    odds = odds_of(sums, outlook)
    expert = index_from_uniform(uniforms[0], odds.sum(0))
    return expert, index_from_uniform(uniforms[1], odds[:, expert])


def odds_of(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Returns sums[row, expert] * outlook[row], divided by about the largest product: [num_rows, num_experts] float."""
    return shares(Scaled(sums.mantissa * outlook.mantissa[:, None], sums.power + outlook.power[:, None]))


def columns(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Returns the distribution of the expert, [num_experts] float: sums * outlook, added over rows and normalised."""
    odds = odds_of(sums, outlook).sum(0)
    return odds / odds.sum()


def others(sums: Scaled) -> Scaled:
    """Returns, for each entry, the sum of the other entries of its row, without cancellation.

    Args:
        sums: [num_rows, num_experts], mantissas in [0.7, 2.84). Mantissas of the result may leave [1, 2).
    """
    # The row's total minus the entry, with one exception: if only one entry has the row's largest power of two, the
    # other entries are summed again for it. So a total minus an entry is at least about a fifth of the total.
    mantissa, power = sums
    top = jnp.max(power, axis=1, keepdims=True)
    is_top = power == top
    is_only_top = is_top & (jnp.sum(is_top, axis=1, keepdims=True, dtype=jnp.int32) == 1)
    second = jnp.max(jnp.where(is_only_top, NOTHING - 2, power), axis=1, keepdims=True)
    at_top = mantissa * two_to(power - top, mantissa.dtype)
    at_second = jnp.where(is_only_top, 0, mantissa * two_to(jnp.minimum(power - second, 0), mantissa.dtype))
    at_top_others = jnp.sum(at_top, axis=1, keepdims=True) - at_top
    return Scaled(
        jnp.where(is_only_top, jnp.sum(at_second, axis=1, keepdims=True), at_top_others),
        jnp.where(is_only_top, second, top),
    )


def gains(sums: Scaled, scaled_losses: jax.Array) -> jax.Array:
    """Returns log2 of the factor by which losses scale each row's sum: [num_rows] float, up to a common constant."""
    above = scaled_losses - jnp.min(scaled_losses)
    before, top = row_sums(sums)
    row_change = row_sums(Scaled(sums.mantissa * jnp.expm1(-above)[None], sums.power), top).mantissa
    change, power = exp_minus(above)
    after, new_top = row_sums(Scaled(sums.mantissa + sums.mantissa * change[None], sums.power + power[None]))
    return log_gain(row_change, before, after, new_top - top)


def log_gain(change: jax.Array, before: jax.Array, after: jax.Array, power: jax.Array) -> jax.Array:
    """Returns log2 of (before + change) / before, which equals (after / before) * 2^power; the change is <= 0."""
    # `change` is accurate if the sum changes little; `after` is accurate if little of the sum remains.
    near = change / before
    far = jnp.log2(after / before) + power.astype(before.dtype)
    return jnp.where(near > -0.5, jnp.log1p(jnp.maximum(near, -0.5)) * near.dtype.type(1 / np.log(2)), far)


def row_sums(sums: Scaled, top: jax.Array | None = None) -> Scaled:
    """Returns the sum of each row, [num_rows], with the power `top`; by default the largest power in the row."""
    top = jnp.max(sums.power, axis=1) if top is None else top
    return Scaled(jnp.sum(sums.mantissa * two_to(sums.power - top[:, None], sums.mantissa.dtype), axis=1), top)


def outlook_of(evidence: Sum, sums: Scaled) -> Scaled:
    """Returns the factors, [num_rows], that make the rows' sums proportional to 2^evidence."""
    powers, total = powers_of(evidence), row_sums(sums)
    return normalise(powers.mantissa / total.mantissa, powers.power - total.power)


def powers_of(logs: Sum) -> Scaled:
    """Returns 2^logs, divided by about the largest of these numbers: [n]."""
    best = jnp.argmax(logs.total)
    behind = (logs.total - logs.total[best]) - (logs.excess - logs.excess[best])
    behind = jnp.maximum(behind, NOTHING)
    power = jnp.round(behind)
    return normalise(jnp.exp2(behind - power), power.astype(jnp.int32))

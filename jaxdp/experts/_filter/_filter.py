"""Updates the weights of a class of sequences by one round: applies losses, and moves weight between experts.

Each class groups its sequences in rows, for example by the number of switches so far. For each row and expert, `sums`,
[num_rows, num_experts], is the total weight of the row's sequences that are currently at this expert. The class also
defines a factor for each row, `outlook`, [num_rows]. The odds of a state (row, expert) are sums[row, expert] *
outlook[row].

No term is negative, and every entry has its own power of two (`Scaled`). Logarithms in float32 would lose small
differences that matter. A common power of two for a whole row would lose an entry that becomes far smaller than the
others and later grows again.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.experts._scaled import NOTHING, Scaled, exp_minus, normalise, nothing, plus, shares, two_to
from jaxdp.numerics.compensated import Sum
from jaxdp.random.choice import index_from_uniform


class Flow(NamedTuple):
    """The flow of weight between experts that is due to switches.

    Attributes:
        odds: [num_rows] > 0, on the host: for each row, the prior weight of a switch to one given other expert, divided
            by the prior weight of no switch. Factors that are in `outlook` are left out. None if sequences never
            switch.
        row_step: 1 if a switch leads to the next row (no sequence in the last row switches); 0 if the row stays the
            same.
    """

    odds: np.ndarray | None
    row_step: int


def step(flow: Flow, sums: Scaled, scaled_losses: jax.Array) -> tuple[Scaled, jax.Array]:
    """Multiplies sums by exp(-scaled_losses), moves weight according to `flow`, and divides all sums by a power 2^k.

    Args:
        flow: the flow of weight.
        sums: [num_rows, num_experts].
        scaled_losses: [num_experts] float, learning_rate * losses.

    Returns:
        (the new sums, [num_rows, num_experts]; k, [] int32, the largest `power` in `sums`).
    """
    change, power = exp_minus(scaled_losses)
    largest = jnp.max(sums.power)
    # Products are not normalised to mantissas in [1, 2), because the next steps accept mantissas of similar magnitude.
    after = Scaled(sums.mantissa + sums.mantissa * change[None], sums.power - largest + power[None])
    if flow.odds is None:
        return normalise(*after), largest
    inflow = sums_of_others(after)
    inflow = Scaled(inflow.mantissa * jnp.asarray(flow.odds, inflow.mantissa.dtype)[:, None], inflow.power)
    if flow.row_step:
        zeros = nothing((1, inflow.mantissa.shape[1]), inflow.mantissa.dtype)
        inflow = jax.tree.map(lambda first, later: jnp.concatenate([first, later[:-1]]), zeros, inflow)
    return plus(after, inflow), largest


def draw(uniforms: jax.Array, sums: Scaled, outlook: Scaled) -> tuple[jax.Array, jax.Array]:
    """Draws an expert and a row ([] int32 each) with odds sums[row, expert] * outlook[row]; uses two uniforms ([2])."""
    odds = odds_of(sums, outlook)
    expert = index_from_uniform(uniforms[0], odds.sum(0))
    return expert, index_from_uniform(uniforms[1], odds[:, expert])


def odds_of(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Returns sums[row, expert] * outlook[row] ([num_rows, num_experts] float) divided by about the largest product."""
    return shares(Scaled(sums.mantissa * outlook.mantissa[:, None], sums.power + outlook.power[:, None]))


def columns(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Returns the distribution of the expert, [num_experts] float: sums * outlook, summed over rows and normalised."""
    odds = odds_of(sums, outlook).sum(0)
    return odds / odds.sum()


def sums_of_others(sums: Scaled) -> Scaled:
    """Returns, for each entry, the sum of all other entries in the same row, without cancellation.

    Args:
        sums: [num_rows, num_experts], with mantissas in [0.69, 2.87). Mantissas of the result may be outside [1, 2).
    """
    # The result is the row's total minus the entry, with one exception. If a single entry has the row's largest power
    # of two, the sum of the other entries is computed for it separately. So a total minus an entry is always at least
    # about a fifth of the total.
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
    """Returns log2 of the factor by which losses scale each row's sum ([num_rows] float), up to a common constant."""
    above = scaled_losses - jnp.min(scaled_losses)
    before, top = row_sums(sums)
    row_change = row_sums(Scaled(sums.mantissa * jnp.expm1(-above)[None], sums.power), top).mantissa
    change, power = exp_minus(above)
    after, new_top = row_sums(Scaled(sums.mantissa + sums.mantissa * change[None], sums.power + power[None]))
    return log_gain(row_change, before, after, new_top - top)


def log_gain(change: jax.Array, before: jax.Array, after: jax.Array, power: jax.Array) -> jax.Array:
    """Returns log2 of (before + change) / before, which is equal to (after / before) * 2^power; change must be <= 0."""
    # `change` is accurate if the sum changes only slightly; `after` is accurate if most of the sum is removed.
    near = change / before
    far = jnp.log2(after / before) + power.astype(before.dtype)
    return jnp.where(near > -0.5, jnp.log1p(jnp.maximum(near, -0.5)) * near.dtype.type(1 / np.log(2)), far)


def row_sums(sums: Scaled, top: jax.Array | None = None) -> Scaled:
    """Returns the sum of each row ([num_rows]) with the power `top`; by default this is the row's largest power."""
    top = jnp.max(sums.power, axis=1) if top is None else top
    return Scaled(jnp.sum(sums.mantissa * two_to(sums.power - top[:, None], sums.mantissa.dtype), axis=1), top)


def outlook_of(evidence: Sum, sums: Scaled) -> Scaled:
    """Returns the factors ([num_rows]) that make the rows' sums proportional to 2^evidence."""
    powers, total = powers_of(evidence), row_sums(sums)
    return normalise(powers.mantissa / total.mantissa, powers.power - total.power)


def powers_of(logs: Sum) -> Scaled:
    """Returns 2^logs ([n]), divided by about the largest of these numbers."""
    best = jnp.argmax(logs.total)
    behind = (logs.total - logs.total[best]) - (logs.excess - logs.excess[best])
    behind = jnp.maximum(behind, NOTHING)
    power = jnp.round(behind)
    return normalise(jnp.exp2(behind - power), power.astype(jnp.int32))

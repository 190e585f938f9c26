"""The step of weights over a class of sequences: it applies losses, and moves weight from expert to expert.

All terms are positive, and every entry has a separate power of two (`Scaled`). Logarithms in float32 would lose small
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
    """The flow of weight from one expert to another.

    Attributes:
        odds: [num_rows] > 0 on the host: the odds of a switch to one given other expert, relative to staying; None for
            no flow.
        row_step: 1 if a switch leads to the next row (the last row has no switch); 0 if a switch stays in its row.
    """

    odds: np.ndarray | None
    row_step: int


def step(flow: Flow, sums: Scaled, scaled_losses: jax.Array) -> tuple[Scaled, jax.Array]:
    """Applies losses and moves weight; divides all sums by the largest power of two of the first row.

    Returns the sums, [num_rows, num_experts], and the power that was divided out, [] int32.
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
        none = nothing((1, inflow.mantissa.shape[1]), inflow.mantissa.dtype)
        inflow = jax.tree.map(lambda first, later: jnp.concatenate([first, later[:-1]]), none, inflow)
    return plus(after, inflow), largest


def draw(uniforms: jax.Array, sums: Scaled, outlook: Scaled) -> tuple[jax.Array, jax.Array]:
    """Draws an expert and a row, [] int32 each, with odds sums * outlook, by two uniforms."""
    odds = odds_of(sums, outlook)
    expert = index_from_uniform(uniforms[0], odds.sum(0))
    return expert, index_from_uniform(uniforms[1], odds[:, expert])


def odds_of(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Returns sums * outlook, divided by about the largest product: [num_rows, num_experts] float."""
    return shares(Scaled(sums.mantissa * outlook.mantissa[:, None], sums.power + outlook.power[:, None]))


def columns(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Returns the distribution of the expert, [num_experts] float: sums * outlook, added over rows and normalised."""
    odds = odds_of(sums, outlook).sum(0)
    return odds / odds.sum()


def others(sums: Scaled) -> Scaled:
    """Returns, for each entry, the sum of the other entries of its row, without cancellation.

    An entry is subtracted from the total of its row, unless no other entry has the row's largest power of two. Then the
    other entries are summed again, at their largest power. So a difference is at least about a fifth of the total.

    Args:
        sums: [num_rows, num_experts], mantissas in [0.7, 2.84). Mantissas of the result may leave [1, 2).
    """
    mantissa, power = sums
    top = jnp.max(power, axis=1, keepdims=True)
    is_top = power == top
    is_alone = is_top & (jnp.sum(is_top, axis=1, keepdims=True, dtype=jnp.int32) == 1)
    second = jnp.max(jnp.where(is_alone, NOTHING - 2, power), axis=1, keepdims=True)
    at_top = mantissa * two_to(power - top, mantissa.dtype)
    at_second = jnp.where(is_alone, 0, mantissa * two_to(jnp.minimum(power - second, 0), mantissa.dtype))
    at_top_others = jnp.sum(at_top, axis=1, keepdims=True) - at_top
    return Scaled(
        jnp.where(is_alone, jnp.sum(at_second, axis=1, keepdims=True), at_top_others), jnp.where(is_alone, second, top)
    )


def gains(sums: Scaled, scaled_losses: jax.Array) -> jax.Array:
    """Returns log2 of the fraction of each row that losses leave, up to a summand that rows share: [num_rows] float.

    Flow within a row does not change the row's sum, so only these fractions change how rows compare.
    """
    above = scaled_losses - jnp.min(scaled_losses)
    before, top = row_sums(sums)
    lost = row_sums(Scaled(sums.mantissa * jnp.expm1(-above)[None], sums.power), top).mantissa
    change, power = exp_minus(above)
    left, new_top = row_sums(Scaled(sums.mantissa + sums.mantissa * change[None], sums.power + power[None]))
    return log_gain(lost, before, left, new_top - top)


def log_gain(lost: jax.Array, before: jax.Array, left: jax.Array, power: jax.Array) -> jax.Array:
    """Returns log2 of (before + lost) / before, which is also left / before * 2^power."""
    # If little is lost, `lost` is the accurate input; if little is left, `left` is.
    near = lost / before
    far = jnp.log2(left / before) + power.astype(before.dtype)
    return jnp.where(near > -0.5, jnp.log1p(jnp.maximum(near, -0.5)) * near.dtype.type(1 / np.log(2)), far)


def row_sums(sums: Scaled, top: jax.Array | None = None) -> Scaled:
    """Returns the sums of rows, at the power `top`, by default the row's largest one: [num_rows]."""
    top = jnp.max(sums.power, axis=1) if top is None else top
    return Scaled(jnp.sum(sums.mantissa * two_to(sums.power - top[:, None], sums.mantissa.dtype), axis=1), top)


def outlook_of(evidence: Sum, sums: Scaled) -> Scaled:
    """Returns factors that make row sums proportional to 2^evidence: [num_rows]."""
    powers, total = powers_of(evidence), row_sums(sums)
    return normalise(powers.mantissa / total.mantissa, powers.power - total.power)


def powers_of(logs: Sum) -> Scaled:
    """Returns 2^logs, divided by about the largest of these numbers: [n]."""
    best = jnp.argmax(logs.total)
    behind = (logs.total - logs.total[best]) - (logs.excess - logs.excess[best])
    behind = jnp.maximum(behind, NOTHING)
    power = jnp.round(behind)
    return normalise(jnp.exp2(behind - power), power.astype(jnp.int32))

"""The step of weights over a class of sequences: losses are absorbed, and weight flows from expert to expert.

All terms are positive, and every entry has a power of two of its own (`Scaled`). Logarithms in float32 would lose the
differences that decide, and one power of two for a row would lose an entry that is far below the others and comes back.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.experts._scaled import NOTHING, Scaled, exp_minus, normalise, nothing, plus, shares, two_to
from jaxdp.numerics.compensated import Sum
from jaxdp.random.choice import index_at


class Flow(NamedTuple):
    """How weight flows from an expert to another one.

    Attributes:
        odds: [num_rows] > 0 on the host, to switch to one other expert, where to stay has 1; None for no flow.
        row_step: 1 if a switch leads to the next row, from the last row nowhere; 0 if it stays in its row.
    """

    odds: np.ndarray | None
    row_step: int


def step(flow: Flow, sums: Scaled, scaled_losses: jax.Array) -> tuple[Scaled, jax.Array]:
    """Losses absorbed and a step taken; the largest power of two of the first row is divided out.

    Args:
        flow: of the class.
        sums: [num_rows, num_experts].
        scaled_losses: [num_experts] float.

    Returns:
        The sums, and the power that was divided out, [] int32.
    """
    change, power = exp_minus(scaled_losses)
    largest = jnp.max(sums.power[0])
    # Products are not made mantissas in [1, 2) again: what follows takes any of about that size.
    after = Scaled(sums.mantissa + sums.mantissa * change[None], sums.power - largest + power[None])
    if flow.odds is None:
        return normalise(*after), largest
    came = others(after)
    came = Scaled(came.mantissa * jnp.asarray(flow.odds, came.mantissa.dtype)[:, None], came.power)
    if flow.row_step:
        none = nothing((1, came.mantissa.shape[1]), came.mantissa.dtype)
        came = jax.tree.map(lambda first, rest: jnp.concatenate([first, rest[:-1]]), none, came)
    return plus(after, came), largest


def draw(uniforms: jax.Array, sums: Scaled, outlook: Scaled) -> tuple[jax.Array, jax.Array]:
    """An expert and a row of odds sums * outlook, [] int32 each.

    Args:
        uniforms: [2] float in [0, 1).
        sums: [num_rows, num_experts].
        outlook: [num_rows].
    """
    law = odds_of(sums, outlook)
    expert = index_at(uniforms[0], law.sum(0))
    return expert, index_at(uniforms[1], law[:, expert])


def odds_of(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Sums * ahead, divided by about the largest of them: [num_rows, num_experts] float."""
    return shares(Scaled(sums.mantissa * outlook.mantissa[:, None], sums.power + outlook.power[:, None]))


def columns(sums: Scaled, outlook: Scaled) -> jax.Array:
    """Sums * ahead, added up over rows and divided by their total: [num_experts] float, the law of the expert."""
    found = odds_of(sums, outlook).sum(0)
    return found / found.sum()


def others(sums: Scaled) -> Scaled:
    """For each entry the sum of the others of its row; nothing cancels. Mantissas are not in [1, 2).

    An entry is subtracted from the total of its row, unless it alone has the row's largest power of two: then all
    others are summed again, at their own largest power. So what is left is at least about a fifth of what it was
    subtracted from.

    Args:
        sums: [num_rows, num_experts], mantissas in [0.7, 2.84).
    """
    mantissa, power = sums
    top = jnp.max(power, axis=1, keepdims=True)
    is_top = power == top
    is_alone = is_top & (jnp.sum(is_top, axis=1, keepdims=True, dtype=jnp.int32) == 1)
    second = jnp.max(jnp.where(is_alone, NOTHING - 2, power), axis=1, keepdims=True)
    at_top = mantissa * two_to(power - top, mantissa.dtype)
    at_second = jnp.where(is_alone, 0, mantissa * two_to(jnp.minimum(power - second, 0), mantissa.dtype))
    rest = jnp.sum(at_top, axis=1, keepdims=True) - at_top
    return Scaled(
        jnp.where(is_alone, jnp.sum(at_second, axis=1, keepdims=True), rest), jnp.where(is_alone, second, top)
    )


def gains(sums: Scaled, scaled_losses: jax.Array) -> jax.Array:
    """Log2 of the part of each row's sum that losses leave, up to the same summand for all rows: [num_rows] float.

    Flow within a row leaves its sum as it is, so this alone decides how rows compare.

    Args:
        sums: [num_rows, num_experts].
        scaled_losses: [num_experts] float.
    """
    above = scaled_losses - jnp.min(scaled_losses)
    before, top = row_sums(sums)
    lost = row_sums(Scaled(sums.mantissa * jnp.expm1(-above)[None], sums.power), top).mantissa
    change, power = exp_minus(above)
    left, new_top = row_sums(Scaled(sums.mantissa + sums.mantissa * change[None], sums.power + power[None]))
    return log_gain(lost, before, left, new_top - top)


def log_gain(lost: jax.Array, before: jax.Array, left: jax.Array, power: jax.Array) -> jax.Array:
    """Log2 of (before + lost) / before, which is also left / before * 2^power.

    Where little is lost, that is what is known exactly; where little is left, what is left.
    """
    near = lost / before
    far = jnp.log2(left / before) + power.astype(before.dtype)
    return jnp.where(near > -0.5, jnp.log1p(jnp.maximum(near, -0.5)) * near.dtype.type(1 / np.log(2)), far)


def row_sums(sums: Scaled, top: jax.Array | None = None) -> Scaled:
    """The sums of rows, at the power `top`, by default the row's largest one: [num_rows]."""
    top = jnp.max(sums.power, axis=1) if top is None else top
    return Scaled(jnp.sum(sums.mantissa * two_to(sums.power - top[:, None], sums.mantissa.dtype), axis=1), top)


def outlook_of(evidence: Sum, sums: Scaled) -> Scaled:
    """What rows have to be multiplied by so that their sums are as 2^evidence: [num_rows]."""
    powers, total = powers_of(evidence), row_sums(sums)
    return normalise(powers.mantissa / total.mantissa, powers.power - total.power)


def powers_of(logs: Sum) -> Scaled:
    """2^logs, divided by about the largest of them: [n]."""
    best = jnp.argmax(logs.total)
    behind = (logs.total - logs.total[best]) - (logs.excess - logs.excess[best])
    behind = jnp.maximum(behind, NOTHING)
    whole = jnp.round(behind)
    return normalise(jnp.exp2(behind - whole), whole.astype(jnp.int32))

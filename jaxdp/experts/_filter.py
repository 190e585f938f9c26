"""The step of weights over a class of sequences: losses are absorbed, and weight flows from expert to expert.

All terms are positive, and every entry has a power of two of its own (`Scaled`). Logarithms in float32 would lose the
differences that decide, and one power of two for a row would lose an entry that is far below the others and comes back.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.experts._scaled import NOTHING, Scaled, exp_minus, normalised, nothing, plus, shares, two_to
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
        return normalised(*after), largest
    came = others(after)
    came = Scaled(came.mantissa * jnp.asarray(flow.odds, came.mantissa.dtype)[:, None], came.power)
    if flow.row_step:
        none = nothing((1, came.mantissa.shape[1]), came.mantissa.dtype)
        came = jax.tree.map(lambda first, rest: jnp.concatenate([first, rest[:-1]]), none, came)
    return plus(after, came), largest


def drawn(uniforms: jax.Array, sums: Scaled, outlook: Scaled) -> tuple[jax.Array, jax.Array]:
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


def powers_of(steps: jax.Array, rates: np.ndarray, dtype: np.dtype) -> Scaled:
    """2^(-steps * rates), with 48 binary digits of the rates: in float32 a product would have only 24.

    Args:
        steps: [] int32 >= 0.
        rates: [n] in [0, 1], on the host.
        dtype: of the mantissas.
    """
    digits = [round(float(rate) * 2.0**48) for rate in rates]
    first, second, third = (
        jnp.asarray([(digit >> shift) & mask for digit in digits], jnp.uint32)
        for shift, mask in ((32, 2**17 - 1), (16, 2**16 - 1), (0, 2**16 - 1))
    )
    low, high = (part.astype(jnp.uint32) for part in (steps & 0xFFFF, steps >> 16))
    lower, fine = _added(low * second, high * third, (low * third) >> 16)
    upper, coarse = _added(low * first, high * second, lower)
    whole = (high * first + upper).astype(jnp.int32)
    fraction = sum(
        (
            each.astype(dtype) * dtype.type(2.0 ** (-16 * place))
            for place, each in enumerate((coarse, fine, low * third & 0xFFFF), 1)
        )
    )
    return normalised(jnp.exp2(-fraction), -whole)


def _added(*terms: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The sum of words: what is above its lowest 16 bits, and these. The sum itself might overflow."""
    lowest = sum((term & 0xFFFF for term in terms[1:]), terms[0] & 0xFFFF)
    return sum((term >> 16 for term in terms), lowest >> 16), lowest & 0xFFFF

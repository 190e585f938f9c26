"""The two mechanisms of `lazy_weights`: the decision whether to keep a sequence, and the draw of a new sequence."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Scalar, default_float
from jaxdp.experts._sequence_class import Label, SequenceClass
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import Sum, in_64_bits
from jaxdp.random.choice import fine_entry
from jaxdp.random.threefry import two_uniforms


@in_64_bits
def scale_losses(rate: Scalar, losses: Sum) -> jax.Array:
    """Computes rate * losses in float64 from exact sums of losses."""
    return jnp.asarray(rate).astype(jnp.float64) * fixed_point.to_float(losses, jnp.float64)


def rejects_sequence(
    key: jax.Array, params: Any, played_loss: Sum, may_resample: jax.Array, is_pure: bool
) -> jax.Array:
    """Draws whether to reject the current sequence after a batch in which its loss was `played_loss`; returns [] bool.

    `may_resample` and `is_pure` affect only the cost that an auditor's tape (`jaxdp.mechanisms.tape`) records.
    """
    return _exceeds(
        key, two_uniforms(key), params, scale_losses(params.learning_rate, played_loss), may_resample, is_pure
    )


@in_64_bits
def _exceeds(
    key: jax.Array, uniforms: jax.Array, params: Any, played_loss: jax.Array, may_resample: jax.Array, is_pure: bool
) -> jax.Array:
    """Draws, with 64-bit floats, whether to reject the sequence; `played_loss` is its loss times the learning rate."""
    # An auditor's tape records the log probabilities of both outcomes. The maximum change of either log probability by
    # one loss vector is the cost in pure DP. The maximum change of the difference of the two log probabilities is a
    # bounded range epsilon, and epsilon^2 / 8 is the cost in zCDP.
    rate, fake = params.learning_rate, params.fake_switch_prob
    chance = jnp.asarray(fake).astype(jnp.float64)
    # The two probabilities sum to 1. The rounding error of 1 + change is at most 2^-53; `weighted_delta` covers it.
    change = jnp.expm1(-played_loss)
    keep_prob, switch_prob = (1 - chance) * (1 + change), chance - (1 - chance) * change
    scores = jnp.stack([jnp.log1p(-chance) - played_loss, jnp.log(switch_prob)]).astype(uniforms.dtype)
    if is_pure:
        largest_change = jnp.maximum(rate, jnp.log1p((1 - fake) * -jnp.expm1(-rate) / fake))
        entry = Entry(
            "keep_or_resample", scores, "max", key, largest_change, jnp.where(may_resample, largest_change, 0)
        )
    else:
        spread = jnp.log1p(jnp.expm1(rate) / fake) / 2  # half of the range of the log odds
        epsilon = jnp.where(may_resample, 2 * spread, 0)
        entry = Entry("keep_or_resample", scores, "spread", key, spread, epsilon, jnp.square(epsilon) / 8)
    recorded = record(entry)
    if recorded is not scores:  # an auditor's tape replaced the scores
        keep_prob, switch_prob = jax.nn.softmax(recorded.astype(jnp.float64))
    coarse, fine = uniforms.astype(jnp.float64)
    drawn = coarse + fine * float(jnp.finfo(uniforms.dtype).eps)  # small numbers then have full precision
    # The comparison uses the smaller probability, which has full precision.
    return jnp.where(switch_prob < keep_prob, drawn < switch_prob, drawn >= keep_prob)


class Weighing(NamedTuple):
    """Functions that initialise, update and read the weights from which a sequence is resampled.

    Attributes:
        init: () -> weights before any loss.
        absorb: (rate, weights, step, losses) -> weights after a batch with these losses, [num_experts].
        odds: (rate, weights, step) -> [num_rows, num_experts] float, proportional to the distribution of the state at
            this step of a sequence that is drawn from the weights.
    """

    init: Callable[[], Any]
    absorb: Callable[[Scalar, Any, jax.Array, Sum], Any]
    odds: Callable[[Scalar, Any, jax.Array], jax.Array]


def weigh_sequences(chain: SequenceClass) -> Weighing:
    """Returns the `Weighing` of sequences that may switch experts; its weights are floats, not exact sums."""

    def absorb(rate: Scalar, weights: Any, step: jax.Array, losses: Sum) -> Any:
        return chain.forward(weights, step, scale_losses(rate, losses).astype(default_float()))

    return Weighing(chain.init, absorb, lambda rate, weights, step: chain.odds(weights, step))


def weigh_experts(num_experts: int) -> Weighing:
    """Returns the `Weighing` of sequences that never switch experts; its weights are exact sums of losses."""

    def absorb(rate: Scalar, totals: Sum, step: jax.Array, losses: Sum) -> Sum:
        del rate, step
        return fixed_point.plus(totals, losses)

    @in_64_bits
    def odds(rate: Scalar, totals: Sum, step: jax.Array) -> jax.Array:
        del step
        return jnp.exp(-scale_losses(rate, fixed_point.excess_over_least(totals)))[None]

    return Weighing(lambda: fixed_point.zero(num_experts), absorb, odds)


def draw(
    key: jax.Array,
    weighing: Weighing,
    params: Any,
    weights: Any,
    step: jax.Array,
    resampled: jax.Array,
) -> Label:
    """Draws a sequence with probability proportional to its weight, and returns the sequence's state at `step`.

    `resampled`, [] bool, affects only the cost that an auditor's tape records.
    """
    odds = weighing.odds(params.learning_rate, weights, step)
    scores = jnp.log(odds).ravel().astype(default_float())
    epsilon = jnp.where(resampled, 2 * params.learning_rate, 0)
    recorded = record(Entry("resample", scores, "spread", key, params.learning_rate, epsilon, jnp.square(epsilon) / 8))
    row, expert = fine_entry(key, odds if recorded is scores else jax.nn.softmax(recorded).reshape(odds.shape))
    return Label(expert, row)

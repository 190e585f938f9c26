"""Whether `lazy_weights` keeps the sequence that it plays, computed in 64 bits from exact losses."""

from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.core import Scalar
from jaxdp.mechanisms.tape import Entry, record
from jaxdp.numerics import fixed_point
from jaxdp.numerics.fixed_point import Sum, in_64_bits
from jaxdp.random.threefry import two_uniforms


@in_64_bits
def scale_losses(rate: Scalar, losses: Sum) -> jax.Array:
    """Losses times the rate, float64."""
    return jnp.asarray(rate).astype(jnp.float64) * fixed_point.to_float(losses, jnp.float64)


def wants_another(key: jax.Array, params: Any, own: Sum, may: jax.Array, is_pure: bool) -> jax.Array:
    """Whether a sequence whose loss in the batch is `own` is not kept: [] bool."""
    return _exceeds(key, two_uniforms(key), params, scale_losses(params.learning_rate, own), may, is_pure)


@in_64_bits
def _exceeds(
    key: jax.Array,
    uniforms: jax.Array,
    params: Any,
    own: jax.Array,
    may: jax.Array,
    is_pure: bool,
) -> jax.Array:
    """Whether a uniform number is not among those by which a sequence of this scaled loss is kept.

    Written on the tape: log probabilities, whose largest change is the pure cost, and half of the range of whose
    changes tells the zero-concentrated one.
    """
    rate, fake = params.learning_rate, params.fake_switch_prob
    chance = jnp.asarray(fake).astype(jnp.float64)
    # Probabilities, whose sum is 1.
    kept, given_up = (1 - chance) * jnp.exp(-own), chance - (1 - chance) * jnp.expm1(-own)
    scores = jnp.log(jnp.stack([kept, given_up])).astype(uniforms.dtype)
    if is_pure:
        most = jnp.maximum(rate, jnp.log1p((1 - fake) * -jnp.expm1(-rate) / fake))
        entry = Entry("keep_or_resample", scores, "max", key, most, jnp.where(may, most, 0))
    else:
        spread = jnp.log1p(jnp.expm1(rate) / fake) / 2  # half the range of log odds
        epsilon = jnp.where(may, 2 * spread, 0)
        entry = Entry("keep_or_resample", scores, "spread", key, spread, epsilon, jnp.square(epsilon) / 8)
    told = record(entry)
    if told is not scores:  # an auditor's tape put in other scores
        kept, given_up = jax.nn.softmax(told.astype(jnp.float64))
    coarse, fine = uniforms.astype(jnp.float64)
    drawn = coarse + fine * float(jnp.finfo(uniforms.dtype).eps)  # small ones with all of their digits
    return jnp.where(given_up < kept, drawn < given_up, drawn >= kept)  # the rarer of the two is what is compared with

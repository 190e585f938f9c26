"""Updates shares such that all shares stay positive: fixed share, and projection onto a clipped simplex.

In this module, shares are the experts' weights, normalised to sum 1.
"""

from collections.abc import Callable

import jax
import jax.numpy as jnp

from jaxdp.core import Scalar
from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum
from jaxdp.numerics.sorting import sort_values


def exponential_step(shares: jax.Array, scaled_losses: jax.Array) -> jax.Array:
    """Multiplies shares by exp(-scaled_losses), and normalises them to sum 1; losses may have any sign."""
    grown = shares * jnp.exp(-(scaled_losses - scaled_losses.min()))
    return grown / grown.sum()


def fixed_share_step(shares: jax.Array, scaled_losses: jax.Array, switch_rate: jax.Array) -> jax.Array:
    """Updates shares ([n]) by losses; then each share passes the fraction `switch_rate` equally to all others.

    `switch_rate` is in (0, 1]; scaled losses are losses times the learning rate.
    """
    after_losses = exponential_step(shares, scaled_losses)
    return (1 - switch_rate) * after_losses + switch_rate / (len(shares) - 1) * (1 - after_losses)


def exact_fixed_share_step(shares: Sum, scaled_losses: jax.Array, switch_rate: jax.Array) -> Sum:
    """Computes `fixed_share_step` as increments of compensated sums, so that rounding errors do not accumulate.

    Losses must differ only slightly, because a share that becomes far smaller in one step keeps the rounding error of
    its former magnitude.
    """
    before = shares.total - shares.excess
    gained = before * jnp.expm1(scaled_losses.min() - scaled_losses)
    # The growth of the sum is a common factor of all shares, so its rounding error cancels in odds.
    growth = (jnp.sum(before) - 1) + jnp.sum(gained)
    absorbed = gained - (before + gained) * (growth / (1 + growth))
    after_losses = before + absorbed
    passed = switch_rate * ((1 - after_losses) / (len(before) - 1) - after_losses)
    return compensated.add(compensated.add(shares, absorbed), passed)


def read(shares: Sum) -> jax.Array:
    """Converts compensated shares to floats, [n]."""
    return shares.total - shares.excess


def clipped_step(shares: jax.Array, scaled_losses: jax.Array, floor: float) -> jax.Array:
    """Updates shares ([n]) by losses, and projects them, in relative entropy, onto shares of at least `floor`.

    `floor` is in (0, 1 / n].
    """
    return project(exponential_step(shares, scaled_losses), floor)


def project(shares: jax.Array, floor: float, sort: Callable[[jax.Array], jax.Array] = sort_values) -> jax.Array:
    """Sets the k smallest shares to `floor` and scales all others, for the smallest k such that all are >= `floor`."""
    ordered = sort(shares)
    positions = jnp.arange(len(shares), dtype=shares.dtype)
    scales = (1 - positions * floor) / jnp.cumsum(ordered[::-1])[::-1]
    fits = (ordered * scales >= floor).at[-1].set(True)  # the last one can be False only because of rounding
    scale = jnp.sum(jnp.where(positions == jnp.argmax(fits).astype(shares.dtype), scales, 0))
    return jnp.maximum(scale * shares, floor)


def odds(totals: Sum, learning_rate: Scalar) -> jax.Array:
    """Returns the odds of exponential weights, exp(-learning_rate * (total - smallest total)), [num_experts] float."""
    # Differences come first. They are small, so a subtraction of the totals' rounding excess still changes them.
    return jnp.exp(-learning_rate * ((totals.total - totals.total.min(-1, keepdims=True)) - totals.excess))

"""Steps of weights that no expert loses for good: fixed share, and the projection on a clipped simplex."""

import jax
import jax.numpy as jnp

from jaxdp.core import Scalar
from jaxdp.numerics import compensated
from jaxdp.numerics.compensated import Sum


def exponential_step(shares: jax.Array, scaled_losses: jax.Array) -> jax.Array:
    """Shares proportional to shares * exp(-scaled_losses).

    Args:
        shares: [n] float > 0, whose sum is 1.
        scaled_losses: [n] float of any sign.
    """
    grown = shares * jnp.exp(-(scaled_losses - scaled_losses.min()))
    return grown / grown.sum()


def fixed_share_step(shares: jax.Array, scaled_losses: jax.Array, switch_rate: jax.Array) -> jax.Array:
    """Absorbs losses; then each share passes the part `switch_rate` on, to all others alike.

    Args:
        shares: [n] float > 0, n >= 2, whose sum is 1.
        scaled_losses: [n] float of any sign.
        switch_rate: [] float in (0, 1].
    """
    kept = exponential_step(shares, scaled_losses)
    return (1 - switch_rate) * kept + switch_rate / (len(shares) - 1) * (1 - kept)


def exact_fixed_share_step(shares: Sum, scaled_losses: jax.Array, switch_rate: jax.Array) -> Sum:
    """`fixed_share_step` by its increments, which a compensated sum adds up: what rounding leaves does not accumulate.

    Shares that are rounded anew in every round drift apart from those of neighbouring losses, by more than small
    learning rates permit.

    Args:
        shares: [n] of floats > 0, n >= 2, whose sum is 1.
        scaled_losses: [n] float of any sign, which differ by little: a share that one step makes far smaller is left
            with the rounding of what it was.
        switch_rate: [] float in (0, 1].
    """
    old = shares.total - shares.excess
    gained = old * jnp.expm1(scaled_losses.min() - scaled_losses)
    growth = (jnp.sum(old) - 1) + jnp.sum(gained)  # of their sum, the same for all: its rounding moves no odds
    absorbed = gained - (old + gained) * (growth / (1 + growth))
    kept = old + absorbed
    passed = switch_rate * ((1 - kept) / (len(old) - 1) - kept)
    return compensated.add(compensated.add(shares, absorbed), passed)


def read(shares: Sum) -> jax.Array:
    """Compensated shares as floats, [n]."""
    return shares.total - shares.excess


def clipped_step(shares: jax.Array, scaled_losses: jax.Array, floor: float) -> jax.Array:
    """Absorbs losses; then the projection, in relative entropy, on shares that are all at least `floor`.

    Args:
        shares: [n] float >= 0, whose sum is 1.
        scaled_losses: [n] float of any sign.
        floor: in (0, 1 / n].
    """
    return project(exponential_step(shares, scaled_losses), floor)


def project(shares: jax.Array, floor: float) -> jax.Array:
    """The k smallest shares become `floor`, the others are scaled, for the smallest k at which all are >= `floor`.

    Args:
        shares: [n] float >= 0, whose sum is 1.
        floor: in (0, 1 / n].
    """
    ordered = jnp.sort(shares)
    places = jnp.arange(len(shares), dtype=shares.dtype)
    scales = (1 - places * floor) / jnp.cumsum(ordered[::-1])[::-1]
    fits = (ordered * scales >= floor).at[-1].set(True)  # only rounding can make the last one fail
    scale = jnp.sum(jnp.where(places == jnp.argmax(fits).astype(shares.dtype), scales, 0))
    return jnp.maximum(scale * shares, floor)


def odds(totals: Sum, learning_rate: Scalar) -> jax.Array:
    """What experts are drawn in proportion to by exponential weights, [num_experts] float: exp(-learning_rate * total).

    Totals are public. Differences first: they are small, and the excess of large totals matters for them.

    Args:
        totals: [num_experts], of losses.
        learning_rate: [] float > 0.
    """
    return jnp.exp(-learning_rate * ((totals.total - totals.total.min(-1, keepdims=True)) - totals.excess))

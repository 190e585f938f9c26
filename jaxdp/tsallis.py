"""Weights of follow-the-regularised-leader with Tsallis entropy of order 1/2."""

from functools import partial

import jax
import jax.numpy as jnp

from jaxdp.kernels import WRITTEN_OUT, folded, own_kernel

FEWEST_STEPS = 2
SLACK = 0.5  # by which the excess of losses may move the root out of its interval


def tsallis_weights(losses: jax.Array, learning_rate: jax.Array, excess: jax.Array | None = None) -> jax.Array:
    """The w on the simplex with w_i = 4 / (learning_rate (losses_i - x))^2 for the one x < min(losses) that there is.

    >>> print(tsallis_weights(jnp.array([0.0, 0.0, 1e30]), jnp.float32(2.0)).round(3))
    [0.5 0.5 0. ]

    Args:
        losses: [num_arms] float, finite, of any sign.
        learning_rate: [] float > 0.
        excess: [num_arms] float, what losses have too much, as in a `compensated.Sum`; None is nothing. Its product
            with learning_rate must be at most 1 in size.

    Returns:
        [num_arms] float in [0, 1], which sum to 1 up to rounding; the smaller the loss, the larger.

    Source: Zimmert & Seldin (2021), Algorithms 1 and 2. With y = learning_rate (min(losses) - x) / 2 the weights are
        (d_i + y)^-2 for d_i >= 0, the least of them 0, and y is in [1, sqrt(num_arms)].
    Deviations: Halley's method for (sum of weights)^(-1/2) = 1, not Newton's for their sum: as a function of y that is
        concave and increasing, for equal d_i even linear. Its steps are held to twice Newton's, and to the interval
        of the root. From y = num_arms^(1/4) 2 steps leave 10^-7 for up to 16 arms, and 4 for up to 65536; under x64 one
        step more, which leaves 10^-13.
    """
    lowest = own_kernel(partial(folded, jnp.minimum), losses)
    parts = (losses, learning_rate / 2, lowest, *(() if excess is None else (excess,)))
    below = _behind(*parts) + own_kernel(_root, *parts)
    return 1 / (below * below)


def _behind(losses: jax.Array, half_rate: jax.Array, lowest: jax.Array, *excess: jax.Array) -> jax.Array:
    """[num_arms]: losses are large, and their excess matters for what is between them. Hence differences first."""
    differences = losses - lowest
    return half_rate * (differences - excess[0] if excess else differences)


def _root(*losses: jax.Array) -> jax.Array:
    """The y for which the sum of (_behind + y)^-2 is 1: []."""
    behind = _behind(*losses)
    size = len(behind)
    parts = list(behind) if size <= WRITTEN_OUT else [behind]  # few: no loop of tiny steps
    y = jnp.full_like(behind[0], size**0.25)
    for _ in range(FEWEST_STEPS + 2 * (size > WRITTEN_OUT) + (y.dtype.itemsize > 4)):
        inverses = [1 / (part + y) for part in parts]
        squares = [inverse * inverse for inverse in inverses]
        none = jnp.zeros_like(y)
        mass = sum(squares, none).sum()
        slope = sum(map(jnp.multiply, squares, inverses), none).sum()
        curvature = sum(map(jnp.multiply, squares, squares), none).sum()
        excess, steepness = jnp.sqrt(mass) - 1, slope * slope
        bend = steepness + 1.5 * excess * (steepness - mass * curvature)
        y = y + mass * excess * slope / jax.lax.max(bend, steepness / 2)
        y = jax.lax.min(jax.lax.max(y, jnp.full_like(y, 1 - SLACK)), jnp.full_like(y, size**0.5 + SLACK))
    return y

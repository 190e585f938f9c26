"""Weights of follow-the-regularised-leader with Tsallis entropy of order 1/2."""

import math
from functools import partial

import jax
import jax.numpy as jnp

from jaxdp.kernels import WRITTEN_OUT, folded, own_kernel

FEWEST_STEPS = 4


def tsallis_weights(losses: jax.Array, learning_rate: jax.Array) -> jax.Array:
    """The w on the simplex with w_i = 4 / (learning_rate (losses_i - x))^2 for the one x < min(losses) that there is.

    >>> print(tsallis_weights(jnp.array([0.0, 0.0, 1e30]), jnp.float32(2.0)).round(3))
    [0.5 0.5 0. ]

    Args:
        losses: [num_arms] float, finite, of any sign.
        learning_rate: [] float > 0.

    Returns:
        [num_arms] float in [0, 1], which sum to 1 up to rounding; the smaller the loss, the larger.

    Source: Zimmert & Seldin (2021), Algorithms 1 and 2. With y = learning_rate (min(losses) - x) / 2 the weights are
        (d_i + y)^-2 for d_i >= 0, the least of them 0, and y is in [1, sqrt(num_arms)].
    Deviations: Newton's method for (sum of weights)^(-1/2) = 1, not for their sum: as a function of y that is concave
        and increasing, for equal d_i even linear. So Newton from y = 1 rises to the root without passing it, in a
        fixed number of steps: 4 for up to 15 arms, 7 for 10^4, with 10^-13 left in float64.
    """
    behind = learning_rate * (losses - smallest(losses)) / 2
    y = own_kernel(_root, behind)
    return 1 / ((behind + y) * (behind + y))


def smallest(losses: jax.Array) -> jax.Array:
    """The smallest of [num_arms] losses: []."""
    return own_kernel(partial(folded, jnp.minimum), losses)


def _root(behind: jax.Array) -> jax.Array:
    """The y >= 1 for which the sum of (behind + y)^-2 is 1."""
    y = jnp.ones_like(behind[0])
    parts = list(behind) if len(behind) <= WRITTEN_OUT else [behind]  # few are written out: no loop of tiny steps
    for _ in range(FEWEST_STEPS + int(math.log2(len(behind))) // 4):
        inverses = [1 / (part + y) for part in parts]
        squares = [inverse * inverse for inverse in inverses]
        mass = sum(squares, jnp.zeros_like(y)).sum()
        slope = sum(map(jnp.multiply, squares, inverses), jnp.zeros_like(y)).sum()
        y = y + mass * (jnp.sqrt(mass) - 1) / slope
    return y

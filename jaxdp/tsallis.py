"""Weights of follow-the-regularised-leader with Tsallis entropy of order 1/2."""

import math

import jax
import jax.numpy as jnp

EXTRA_STEPS = 6  # Newton's last steps double the number of digits each


def tsallis_weights(losses: jax.Array, learning_rate: jax.Array) -> jax.Array:
    """The w on the simplex with w_i = 4 / (learning_rate (losses_i - x))^2 for the one x < min(losses) that there is.

    >>> print(tsallis_weights(jnp.array([0.0, 0.0, 1e30]), jnp.float32(2.0)).round(3))
    [0.5 0.5 0. ]

    Args:
        losses: [num_arms] float, finite, of any sign.
        learning_rate: [] float > 0.

    Returns:
        [num_arms] float in [0, 1], which sum to 1; the smaller the loss, the larger.

    Source: Zimmert & Seldin (2021), Algorithms 1 and 2. With y = learning_rate (min(losses) - x) / 2 the weights are
        (d_i + y)^-2, and their sum is convex and decreasing in y, >= 1 at y = 1 and <= 1 at y = sqrt(num_arms). Newton
        from y = 1 rises to the root without passing it, at first by a factor of about 3/2 a step, or more.
    Deviations: a fixed number of steps, enough for the precision; what rounding leaves of the sum is divided out.
    """
    behind = learning_rate * (losses - losses.min()) / 2
    steps = math.ceil(math.log(len(losses)) / (2 * math.log(1.5))) + EXTRA_STEPS

    def newton(_: int, y: jax.Array) -> jax.Array:
        inverse = 1 / (behind + y)
        square = inverse * inverse
        return y + (square.sum() - 1) / (2 * (square * inverse).sum())

    y = jax.lax.fori_loop(0, steps, newton, jnp.ones_like(behind[0]), unroll=True)
    weights = 1 / ((behind + y) * (behind + y))
    return weights / weights.sum()

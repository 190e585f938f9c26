"""Fits linear utilities to noisy wins, by minimising the logistic loss over a ball."""

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.numerics.eigen import eigh
from jaxdp.numerics.kernels import any_lane
from jaxdp.numerics.small_linear_algebra import cholesky, cholesky_solve

MOST_STEPS = 30
# Possible step lengths, as fractions of the full step. The largest valid one is used; the smallest if none is valid.
LENGTHS = 4.0 ** -np.arange(10)
SHORT = float(np.log(1.5))  # a step that changes no utility by more than this has length 1
WIDENINGS = 6  # iterations of `widen` in each step, from the previous step's result


def fit_in_ball(
    differences: jax.Array, plays: jax.Array, wins: jax.Array, rank: jax.Array, radius: jax.Array
) -> jax.Array:
    """Fits utilities to duels: returns the w with |w| <= radius of the largest likelihood.

    w minimises the sum over pairs of n ln(1 + e^{z.w}) - s z.w, with the pair's number n of duels (`plays`), its number
    s of `wins`, and its difference z of features. Only pairs with plays > 0 count. The sum is convex even if noisy wins
    are below 0 or above plays. The component of w orthogonal to the differences of these pairs has no effect, and is 0.

    Args:
        differences: [num_pairs, dim] float, features of the left arm minus features of the right arm.
        plays: [num_pairs] integer or float >= 0, not all 0: number of duels of each pair.
        wins: [num_pairs] float, noisy numbers of wins of the left arm; ignored for pairs with plays 0.
        rank: [] integer, dimension of the span of the differences of pairs with plays > 0.
        radius: [] float > 0.

    Returns:
        [dim] float.

    Source:
        Newton's method; Moré & Sorensen (1983) for the quadratic model in a ball.
    """
    # Each step of Newton's method moves towards the minimum of the quadratic model over the ball. The step is shortened
    # until the sum's slope along the step is at most half of the initial descent.
    dtype, dim = differences.dtype, differences.shape[1]
    is_played = plays > 0
    total = jnp.sum(plays.astype(dtype))
    shares = plays.astype(dtype) / total
    won = jnp.where(is_played, wins, 0).astype(dtype) / total
    differences = jnp.where(is_played[:, None], differences, 0)
    # In the coordinates of eigenvectors, directions with little effect are separate axes, and lose no digits.
    basis = eigh(_times((differences * shares[:, None]).T, differences)).vectors[:, ::-1]
    is_spanned = jnp.arange(dim, dtype=rank.dtype) < rank
    inside = jnp.where(is_spanned[None], _times(differences, basis), 0)
    unspanned = jnp.diag((~is_spanned).astype(dtype))

    def excess(weights: jax.Array) -> jax.Array:
        """Returns the model's expected wins minus the noisy wins, as fractions of all duels.

        The result is [num_pairs].
        """
        return shares * jax.nn.sigmoid(jnp.sum(inside * weights[None], axis=1)) - won

    def step(state):
        count, weights, widening, _ = state
        utilities = jnp.sum(inside * weights[None], axis=1)
        # The smaller probability is not computed as 1 minus the larger probability: in floats this may be 0.
        curvature = (shares * jax.nn.sigmoid(utilities) * jax.nn.sigmoid(-utilities))[:, None] * inside
        hessian = _times(curvature.T, inside) + unspanned
        slope = jnp.sum(inside * excess(weights)[:, None], axis=0)
        target = jnp.sum(hessian * weights[None], axis=1) - slope
        minimum, widening = _in_ball(hessian, target, radius, widening)
        move = minimum - weights
        along = jnp.sum(inside * move[None], axis=1)
        moved = jnp.max(jnp.abs(along))
        lengths = jnp.asarray(LENGTHS, dtype)
        slopes = jax.vmap(lambda length: jnp.sum(along * excess(weights + length * move)))(lengths)
        fits = slopes <= 0.5 * jnp.abs(jnp.sum(slope * move))
        # A short step fits without being shortened: if utilities move by at most a, a logistic curvature grows by at
        # most e^a. But the test above may fail for a short step by rounding, since a move along the ball's boundary is
        # nearly orthogonal to the slope.
        fits = fits | ((lengths == 1) & (moved <= SHORT))
        length = lengths[jnp.where(jnp.any(fits), jnp.argmax(fits), len(LENGTHS) - 1)]  # the longest length that fits
        return count + 1, weights + length * move, widening, moved

    def needs_step(state) -> jax.Array:
        count, _, _, moved = state
        return any_lane((count < MOST_STEPS) & (moved > jnp.finfo(dtype).eps ** 0.625))

    start = jnp.int32(0), jnp.zeros(dim, dtype), jnp.zeros((), dtype), jnp.asarray(jnp.inf, dtype)
    _, weights, _, _ = jax.lax.while_loop(needs_step, step, start)
    return jnp.sum(basis * weights[None], axis=1)


def _in_ball(matrix: jax.Array, rhs: jax.Array, radius: jax.Array, widening: jax.Array) -> tuple[jax.Array, jax.Array]:
    """Returns the x that minimises x.matrix.x / 2 - rhs.x for |x| <= radius, and c >= 0 with (matrix + c I) x = rhs.

    `widening` is a first guess of c, which `WIDENINGS` iterations improve. If the norm of x then still exceeds the
    radius, x is rescaled to the norm `radius`.
    """
    # Newton's method for 1 / |x| = 1 / radius approaches the least such c. It starts at `widening`, or at a lower bound
    # on c if that bound is larger. Without the bound, x might overflow if the matrix is small relative to rhs.
    eye = jnp.eye(len(rhs), dtype=rhs.dtype)
    least = jnp.sqrt(jnp.sum(rhs**2)) / radius - jnp.sqrt(jnp.sum(matrix**2))
    widening = jnp.maximum(widening, least)

    def solve(widening: jax.Array) -> tuple[jax.Array, jax.Array, jax.Array]:
        lower = cholesky(matrix + widening * eye)
        solution = cholesky_solve(lower, rhs)
        return lower, solution, jnp.sqrt(jnp.sum(solution**2))

    def widen(_, widening: jax.Array) -> jax.Array:
        lower, solution, norm = solve(widening)
        derivative = jnp.sum(solution * cholesky_solve(lower, solution))
        derivative = jnp.where(derivative > 0, derivative, 1)
        return jnp.maximum(widening + (norm / radius - 1) * norm**2 / derivative, 0)

    widening = jax.lax.fori_loop(0, WIDENINGS, widen, widening)
    _, solution, norm = solve(widening)
    return solution * jnp.minimum(1, radius / jnp.maximum(norm, radius)), widening


def _times(left: jax.Array, right: jax.Array) -> jax.Array:
    return jnp.matmul(left, right, precision="highest")

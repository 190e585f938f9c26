"""High-probability bounds on the prediction error of noisy gradient descent, in `generalized_linear`.

`docs/proofs/linear_models.md`, section "Noisy descent", contains the proof and defines the symbols.
"""

import math

import jax
import jax.numpy as jnp

from jaxdp.core import Scalar, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.numerics.kernels import lanes_fast, lanes_slow
from jaxdp.validation import check_positive


@pytree_dataclass
class Descent:
    """The step size of descent, and the constants of bounds on the error of predictions. JAX traces them.

    Attributes:
        learning_rate: [] float > 0, zeta.
        square_rate: [] float > 0. The squared norms of t reported gradients, |g_t + n_t|^2, sum to at most square_rate
            t + square_root sqrt(t) + square_offset. (For normal noise, this bounds the sum without the terms 2 g_t .
            n_t, which are included in drift_rate.)
        square_root: [] float >= 0, the factor of sqrt(t) in this bound.
        square_offset: [] float >= 0, the constant in this bound.
        drift_rate: [] float >= 0. Terms linear in the noise n_t add at most drift_rate sqrt(t) to the bound B in the
            proof.
        curvature: [] float > 0, mu, the minimum slope of the link.
        reward_term: [] float >= 0, m = R^2 l / mu.
    """

    learning_rate: Scalar
    square_rate: Scalar
    square_root: Scalar
    square_offset: Scalar
    drift_rate: Scalar
    curvature: Scalar
    reward_term: Scalar


def descent_of(
    *,
    dim: int,
    horizon: int,
    log_term: float,
    residual_bound: float,
    noise_stddev: float,
    report_radius: float,
    mean_square: float,
    curvature: float,
    noise_proxy: float,
    learning_rate: float | None,
) -> Descent:
    """Computes the step size of descent on noisy gradients, and bounds on the error of the predictions.

    Args:
        dim: d of contexts.
        horizon: rounds T. The default step size minimises the bound B in the proof after T rounds, except that for
            normal noise it ignores the dependence of drift_rate on zeta.
        log_term: l > 0, the result of `ellipsoid.log_term_of`.
        residual_bound: Y > 0, the absolute value to which residuals are clipped.
        noise_stddev: s >= 0, the standard deviation of a reported gradient's noise in every direction. For points on a
            sphere, the noise is sub-Gaussian with this parameter.
        report_radius: b, the maximum norm of a reported gradient; 0 for normal noise, and without noise.
        mean_square: q, the mean squared norm of a reported gradient, if reports are points on a sphere; ignored if
            report_radius is 0.
        curvature: mu > 0, the minimum slope of the link.
        noise_proxy: R^2 > 0, a variance proxy of rewards.
        learning_rate: zeta, > 0. None means 1 / sqrt(S), where S is the bound on the sum of squares in T rounds.

    Raises:
        ValueError: if learning_rate or noise_proxy is not finite and > 0, or a bound is outside the range of JAX's
            default float dtype.
    """
    if report_radius > 0:
        squares = (
            mean_square,
            math.sqrt(2 * log_term * mean_square) * report_radius,
            report_radius**2 * log_term / 3,
        )
    else:
        variance = noise_stddev**2
        squares = (
            residual_bound**2 + dim * variance,
            2 * variance * math.sqrt(2 * dim * log_term),
            2 * variance * log_term,
        )
    if learning_rate is None:
        learning_rate = 1 / math.sqrt(squares[0] * horizon + squares[1] * math.sqrt(horizon) + squares[2])
    rate = scalar_leaf("learning_rate", check_positive("learning_rate", learning_rate))
    across = 2.0 if report_radius > 0 else 2 + float(rate) * residual_bound
    names = ("the bound on gradients", "the drift of noisy gradients")
    return Descent(
        learning_rate=rate,
        square_rate=scalar_leaf(names[0], squares[0]),
        square_root=scalar_leaf(names[0], squares[1]),
        square_offset=scalar_leaf(names[0], squares[2]),
        drift_rate=scalar_leaf(names[1], across * noise_stddev * math.sqrt(2 * log_term)),
        curvature=scalar_leaf("curvature", curvature),
        reward_term=scalar_leaf("noise_proxy", check_positive("noise_proxy", noise_proxy) * log_term / curvature),
    )


def prediction_width(descent: Descent, rounds: jax.Array) -> jax.Array:
    """Returns a bound ([] float) on sqrt(Z).

    Z is the sum of squared prediction errors x^T (w - theta) over t rounds. In each round, x is the context of the arm
    played, and w the iterate; theta is the true model. `rounds` is t.
    """
    root = jnp.sqrt(rounds)
    squares = descent.square_rate * rounds + descent.square_root * root + descent.square_offset
    regret = 0.5 / descent.learning_rate + 0.5 * descent.learning_rate * squares + descent.drift_rate * root  # B
    term = 2 * descent.reward_term  # 2 m
    return (jnp.sqrt(term) + jnp.sqrt(term + 4 * regret)) / (2 * jnp.sqrt(descent.curvature))


def step(descent: Descent, iterate: jax.Array, gradient: jax.Array) -> jax.Array:
    """Takes a step against the gradient, and projects the iterate onto the unit ball; all arrays are [dim] float."""
    moved = lanes_fast(iterate - descent.learning_rate * gradient)
    in_rows = lanes_slow(moved)  # a sum in the other layout would differ in the last bits
    return lanes_fast(moved / jnp.maximum(1, jnp.sqrt(jnp.sum(in_rows * in_rows))))

"""Confidence ellipsoids of a linear model fitted from noisy moments.

After t rounds, V is the sum of x x^T plus noise B plus a shift c times the identity, and u is the sum of y x plus
noise. The model is V^-1 u. L bounds the absolute values of the eigenvalues of B, and c = 2 L.
`docs/proofs/linear_models.md`, section "Confidence ellipsoids", proves that the ellipsoid contains the true model in
all rounds with probability at least 1 - failure_prob, if contexts and the model have norms of at most 1.
"""

import math

import jax
import jax.numpy as jnp

from jaxdp.core import Scalar, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.validation import check_positive, check_probability


@pytree_dataclass
class Radii:
    """Constants of the bounds on the noise of the sums, as functions of the scale n of the noise. JAX traces them.

    n is sqrt(t) if each of t users adds noise. If a curator adds noise by a continual counter, n is the counter's
    standard deviation. All bounds hold in all rounds with probability at least 1 - failure_prob, except if the radii
    come from `published_radii`.

    Attributes:
        matrix_rate: [] float >= 0. All eigenvalues of the noise B are at most matrix_rate n + matrix_offset in absolute
            value.
        matrix_offset: [] float >= 0, the constant in this bound.
        vector_rate: [] float >= 0. The norm of the noise of u is at most vector_rate n.
        log_term: [] float > 0, 2 l: twice the result of `log_term_of`. From `published_radii`: ln T >= 0.
        noise_proxy: [] float > 0, the variance proxy R^2 of rewards.
    """

    matrix_rate: Scalar
    matrix_offset: Scalar
    vector_rate: Scalar
    log_term: Scalar
    noise_proxy: Scalar


def gaussian_radii(
    *, dim: int, horizon: int, failure_prob: float, noise_stddev: float, cross_stddev: float, noise_proxy: float
) -> Radii:
    """Returns the radii for isotropic Gaussian noise.

    The noise has the standard deviation noise_stddev n on the diagonal of B, noise_stddev n / sqrt(2) off the diagonal,
    and cross_stddev n in each entry of u.

    Args:
        dim: d of contexts.
        horizon: rounds T.
        failure_prob: in (0, 1).
        noise_stddev: >= 0.
        cross_stddev: >= 0.
        noise_proxy: variance proxy of rewards, > 0.

    Raises:
        ValueError: if failure_prob or noise_proxy is out of range.
    """
    log_term = log_term_of(horizon, failure_prob)
    return _make_radii(
        noise_stddev * (math.sqrt(2 * dim) + math.sqrt(2 * log_term)),
        0.0,
        cross_stddev * (math.sqrt(dim) + math.sqrt(2 * log_term)),
        log_term,
        noise_proxy,
    )


def ball_radii(
    *,
    dim: int,
    horizon: int,
    failure_prob: float,
    noise_stddev: float,
    cross_stddev: float,
    report_radius: float,
    noise_proxy: float,
) -> Radii:
    """Returns the radii for reports that are random points on a sphere; n is sqrt(t).

    Args:
        dim: d of contexts.
        horizon: rounds T.
        failure_prob: in (0, 1).
        noise_stddev: >= 0, the root mean square of each coordinate of a report; 0 for reports without noise.
        cross_stddev: >= 0. In every direction, the noise that one report adds to u is sub-Gaussian with this parameter
            (standard deviation).
        report_radius: radius of the sphere.
        noise_proxy: variance proxy of rewards, > 0.

    Raises:
        ValueError: if failure_prob or noise_proxy is out of range.
    """
    log_term = log_term_of(horizon, failure_prob)
    log_dim = log_term + math.log(dim)
    return _make_radii(
        noise_stddev * math.sqrt((dim + 1) * log_dim),
        (2 / 3) * (report_radius + 1) * log_dim if noise_stddev > 0 else 0.0,
        cross_stddev * (math.sqrt(dim) + math.sqrt(2 * log_term)),
        log_term,
        noise_proxy,
    )


def log_term_of(horizon: int, failure_prob: float) -> float:
    """Returns l = ln(6 T / failure_prob).

    Raises:
        ValueError: if failure_prob is not in (0, 1).
    """
    return math.log(6 * horizon / check_probability("failure_prob", failure_prob))


def _make_radii(
    matrix_rate: float, matrix_offset: float, vector_rate: float, log_term: float, noise_proxy: float
) -> Radii:
    """Checks the numbers and returns them as `Radii`; the argument `log_term` is l, and `Radii.log_term` is 2 l."""
    return Radii(
        matrix_rate=scalar_leaf("the bound on the matrix noise", matrix_rate),
        matrix_offset=scalar_leaf("the bound on the matrix noise", matrix_offset),
        vector_rate=scalar_leaf("the bound on the vector noise", vector_rate),
        log_term=scalar_leaf("the logarithmic term", 2 * log_term),
        noise_proxy=scalar_leaf("noise_proxy", check_positive("noise_proxy", noise_proxy)),
    )


def eigenvalue_bound(radii: Radii, noise: jax.Array) -> jax.Array:
    """Returns the bound L >= 1 on the eigenvalues of the matrix noise B, [] float; `noise` is the scale n."""
    return jnp.maximum(1, radii.matrix_rate * noise + radii.matrix_offset)


def noise_width(radii: Radii, bound: jax.Array, noise: jax.Array) -> jax.Array:
    """Returns a bound ([] float) on the norm (induced by V) of the model's error that noise and the shift 2 L cause.

    The true model has a norm of at most 1. `bound` is L, and `noise` is the scale n of the noise.
    """
    return jnp.sqrt(3 * bound) + radii.vector_rate * noise / jnp.sqrt(bound)


def reward_width(radii: Radii, bound: jax.Array, rounds: jax.Array, dim: int) -> jax.Array:
    """Returns a bound ([] float) on the norm (induced by V) of the model's error from the randomness of t rewards.

    `bound` is L, `rounds` is t, and `dim` is the dimension of contexts.
    """
    return jnp.sqrt(radii.noise_proxy * (radii.log_term + dim * jnp.log1p(rounds / (dim * bound))))


def published_radii(*, dim: int, horizon: int, failure_prob: float, noise_stddev: float) -> Radii:
    """Returns the radii of the published Upsilon_t and beta_t, for noise of standard deviation noise_stddev n.

    Every entry of the noise has this standard deviation. Here `Radii.log_term` is ln T, and `Radii.noise_proxy` is
    unused. Compute the width by `published_width`.

    Args:
        dim: d of contexts.
        horizon: rounds T.
        failure_prob: alpha, in (0, 1).
        noise_stddev: sigma, >= 0.

    Raises:
        ValueError: if failure_prob is out of range.

    Source:
        LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020), Algorithm 5.
    """
    log_share = math.log(2 * horizon / check_probability("failure_prob", failure_prob))
    rate = noise_stddev * (4 * math.sqrt(dim) + 2 * log_share)
    return _make_radii(rate, 0.0, noise_stddev * math.sqrt(dim), math.log(horizon) / 2, 1.0)


def published_width(radii: Radii, bound: jax.Array, noise: jax.Array, dim: int) -> jax.Array:
    """Returns the published beta_t, [] float: 2 sigma sqrt(d ln T) + (sqrt(3 L) + sigma sqrt(d t / L)) d ln T.

    `radii` must come from `published_radii`; `bound` is L, `noise` is the scale n = sqrt(t), and `dim` is d.
    """
    by_noise = 2 * radii.vector_rate * jnp.sqrt(radii.log_term)
    return by_noise + noise_width(radii, bound, noise) * dim * radii.log_term

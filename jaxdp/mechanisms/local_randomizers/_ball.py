"""A local randomizer from a ball to a sphere with pure privacy, and bounds on the spread of its reports."""

import functools
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike
from scipy.special import betaincinv, logsumexp

from jaxdp.core import Scalar
from jaxdp.mechanisms._randomized_response import sign_turns
from jaxdp.mechanisms.tape import Entry, record

SPARE = 1e-4  # relative margin of a supremum that is searched on a grid
NODES, LOWEST, HIGHEST, STEPS = 4096, 0.02, 20.0, 160  # grid parameters


def randomize_in_ball(
    key: jax.Array, vector: ArrayLike, epsilon: Scalar, *, radius: float, report_radius: Scalar
) -> jax.Array:
    """Reports a vector of norm at most `radius` as a vector of norm `report_radius`, without bias.

    A direction w is drawn from the unit sphere. The report is report_radius * w or -report_radius * w: the point on the
    vector's side with probability 1/2 + tanh(epsilon / 2) * |vector| / (2 * radius), otherwise the opposite point.

    Args:
        key: a PRNG key.
        vector: [dim] float, dim >= 2. A vector of larger norm counts as a vector of norm `radius`, without a privacy
            cost.
        epsilon: [] float > 0, may be traced. At infinity the report is still random.
        radius: radius of the ball, > 0.
        report_radius: [] float from `sphere_radius`, may be traced.

    Returns:
        [dim] float with mean `vector`, in the dtype of `vector`.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one vector; adjacency: replace one.
        - Why: Let W be the direction as drawn in floating point, and z a report. Only the draws W = z and W = -z can
          lead to z. Each draw leads to z with a probability between 1 / (1 + e^epsilon) and e^epsilon / (1 +
          e^epsilon), for any vector and any computation of the vector's side. So P(z | vector) lies between these
          multiples of P(W = z) + P(W = -z), which does not depend on the vector. The proof needs no symmetry of W and
          no exact arithmetic: the coin's probability is rounded as in `randomize_scalar`, towards 1/2.

    Source:
        Duchi, Jordan & Wainwright (2018), section 4.2.3, for the L2 ball.

    Deviations:
        One coin replaces the two coins of the source, for the norm and for the side; reports have the same
        distribution.
    """
    vector = jnp.asarray(vector)
    key_direction, key_coin = jax.random.split(key)
    vector = record(Entry("randomize_in_ball", vector, "any", key, None, epsilon))
    length = jnp.sqrt(jnp.sum(vector * vector))
    turns = sign_turns(key_coin, length / radius, epsilon)
    direction = jax.random.normal(key_direction, vector.shape, vector.dtype)
    size = jnp.sqrt(jnp.sum(direction * direction))
    # floating-point normals may all be zero: the direction is then the first axis
    first_axis = jnp.zeros_like(direction).at[0].set(1)
    candidate = jnp.where(size > 0, direction / jnp.where(size > 0, size, 1), first_axis) * jnp.asarray(
        report_radius, vector.dtype
    )
    towards = jnp.sum(candidate * vector) >= 0
    return jnp.where(towards ^ turns, candidate, -candidate)


def sphere_radius(dim: int, epsilon: float, radius: float) -> float:
    """Returns the norm of reports with which `randomize_in_ball` is unbiased.

    A coordinate of a random unit vector has E|w_1| = Gamma(dim / 2) / (sqrt(pi) * Gamma((dim + 1) / 2)). So a report of
    norm B has the mean tanh(epsilon / 2) * B * E|w_1| * vector / radius.

    Args:
        dim: dimension of vectors, >= 2.
        epsilon: > 0; infinity is allowed.
        radius: radius of the ball.

    Returns:
        radius * sqrt(pi) * Gamma((dim + 1) / 2) / (Gamma(dim / 2) * tanh(epsilon / 2)), in float64.
    """
    log_size = math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2)
    return radius * math.sqrt(math.pi) * math.exp(log_size) / math.tanh(epsilon / 2)


class OnSphere(NamedTuple):
    """Bounds for one coordinate of a report by `randomize_in_ball`.

    Attributes:
        size: factor by which the coordinate is multiplied.
        report_radius: norm of reports.
        bias: tanh(epsilon / 2).
        coordinates: number of coordinates of the vector.
    """

    size: float
    report_radius: float
    bias: float
    coordinates: int

    def range_bound(self, horizon: int, failure_prob: float) -> float:
        """Returns a bound on the coordinate's magnitude in all rounds, by a union bound over coordinates and rounds."""
        # the square of a random unit vector's coordinate has the distribution Beta(1 / 2, (dim - 1) / 2)
        share = failure_prob / horizon / self.coordinates
        return self.size * self.report_radius * math.sqrt(1 - betaincinv((self.coordinates - 1) / 2, 0.5, share))

    def second_moment(self) -> float:
        """Returns the coordinate's second moment, which is the same for every vector."""
        return (self.size * self.report_radius) ** 2 / self.coordinates

    def variance_proxy(self) -> float:
        """Returns a variance proxy of the coordinate, for random vectors of any distribution."""
        return (self.size * self.report_radius) ** 2 * any_proxy(self.coordinates, self.bias)


@functools.lru_cache(maxsize=256)
def fixed_proxy(dim: int, bias: float) -> float:
    """Returns a nearly minimal variance proxy of a coordinate of a report of norm 1, for every fixed vector.

    `docs/proofs/ball_reports.md` proves that the search considers the worst cases.

    Args:
        dim: dimension of the vectors, >= 2.
        bias: tanh(epsilon / 2), in (0, 1].

    Returns:
        The result of a grid search times 1 + 1e-4, in float64. It lies between 1 / dim and 1.13 / (dim - 1).
    """
    coordinates, logs = _half_sphere(dim)
    above = _suffix_sums(np.exp(logs) * coordinates)
    means = 2 * bias * above
    shares = np.linspace(0, 1, 129)
    best = 1 / dim
    for slope in _slopes(dim):
        up, down, shift = _tilt_both_ways(coordinates, logs, slope)
        rising = _log((up + down).sum() + bias * _suffix_sums(up - down)) - slope * means
        falling = _log((1 - bias * shares) * up.sum() + (1 + bias * shares) * down.sum()) + slope * shares * means[0]
        best = max(best, 2 / slope**2 * (shift + max(rising.max(), falling.max())))
    return best * (1 + SPARE)


@functools.lru_cache(maxsize=256)
def any_proxy(dim: int, bias: float) -> float:
    """Returns a variance proxy of a coordinate of a report of norm 1, for random vectors of any distribution."""
    coordinates, logs = _half_sphere(dim)
    means = 2 * bias * (_suffix_sums(np.exp(logs) * coordinates) - _prefix_sums(np.exp(logs) * coordinates))
    best = 1 / dim
    for slope in _slopes(dim):
        up, down, shift = _tilt_both_ways(coordinates, logs, slope)
        total = _suffix_sums((1 + bias) * up + (1 - bias) * down) + _prefix_sums((1 - bias) * up + (1 + bias) * down)
        best = max(best, 2 / slope**2 * (shift + float(np.max(_log(total) - slope * means))))
    return best * (1 + SPARE)


def _half_sphere(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Returns values > 0 of a coordinate of a random unit vector, and the logs of probabilities that sum to 1 / 2."""
    nodes = max(NODES, int(64 * math.sqrt(dim)))
    angles = (np.arange(nodes) + 0.5) * (math.pi / 2 / nodes)
    logs = (dim - 2) * np.log(np.cos(angles))
    return np.sin(angles), logs - logsumexp(logs) - math.log(2)


def _tilt_both_ways(coordinates: np.ndarray, logs: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Returns p * exp(slope * x - shift) and p * exp(-slope * x - shift) for the probabilities p, and the shift."""
    up = logs + slope * coordinates
    shift = float(up.max())  # against overflow
    return np.exp(up - shift), np.exp(logs - slope * coordinates - shift), shift


def _slopes(dim: int) -> np.ndarray:
    """Returns a grid of slopes; at larger slopes the bound E exp(slope (x - mean)) <= exp(2 slope) suffices."""
    return np.geomspace(LOWEST, max(HIGHEST, 4 * math.sqrt(dim)), STEPS) * math.sqrt(dim)


def _suffix_sums(terms: np.ndarray) -> np.ndarray:
    """Returns the sum of each term and all later terms, and 0 as a last entry."""
    return np.append(np.cumsum(terms[::-1])[::-1], 0.0)


def _prefix_sums(terms: np.ndarray) -> np.ndarray:
    """Returns the sum of the terms before each term, and the sum of all terms as a last entry."""
    return np.append(0.0, np.cumsum(terms))


def _log(positive: np.ndarray) -> np.ndarray:
    """Returns the logarithm; underflowing numbers give a result that is too large, which is safe."""
    return np.log(np.maximum(positive, np.finfo(float).tiny))

"""How a user reports a vector of a ball as one of a sphere, with pure privacy; and how far such reports spread."""

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

SPARE = 1e-4  # relative, of a supremum that is searched for on a grid
NODES, LOWEST, HIGHEST, STEPS = 4096, 0.02, 20.0, 160  # of that grid


def randomize_in_ball(
    key: jax.Array, vector: ArrayLike, epsilon: Scalar, *, radius: float, report_radius: Scalar
) -> jax.Array:
    """A vector of length `report_radius` for one of length at most `radius`, without bias.

    A direction w is drawn from the unit sphere. The report is report_radius times w or -w: the one on the vector's side
    with probability 1/2 + |vector| / (2 radius) tanh(epsilon / 2), else the other one.

    Args:
        key: a PRNG key.
        vector: [dim] float, dim >= 2. A longer one counts as long as `radius`, which costs no privacy.
        epsilon: [] float > 0, may be traced. At infinity the report is still random.
        radius: of the ball, > 0.
        report_radius: [] float from `sphere_radius`, may be traced.

    Returns:
        [dim] float of mean `vector`, in its dtype.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one vector; adjacency: replace one.
        - Why: Let W be the direction as it is drawn, in floating point, and z a report. Of the two draws W = z and W =
          -z that may lead to z, either does with a probability between 1 / (1 + e^epsilon) and e^epsilon / (1 +
          e^epsilon), whatever the vector is and however its side is computed. So P(z | vector) lies between these
          multiples of P(W = z) + P(W = -z), in which there is no vector. Neither symmetry of W nor any rounding matters
          to it: the coin's probability is rounded as in `randomize_scalar`, towards 1/2.

    Source:
        Duchi, Jordan & Wainwright (2018), section 4.2.3, for the L2 ball.

    Deviations:
        Their two coins, one for the length and one for the side, are one coin of the same law.
    """
    vector = jnp.asarray(vector)
    key_direction, key_coin = jax.random.split(key)
    vector = record(Entry("randomize_in_ball", vector, "any", key, None, epsilon))
    length = jnp.sqrt(jnp.sum(vector * vector))
    turns = sign_turns(key_coin, jnp.minimum(length / radius, 1), epsilon)
    direction = jax.random.normal(key_direction, vector.shape, vector.dtype)
    size = jnp.sqrt(jnp.sum(direction * direction))
    # All of it 0, as a generator of finitely many numbers may draw it, stands for the first axis.
    first = jnp.zeros_like(direction).at[0].set(1)
    shown = jnp.where(size > 0, direction / jnp.where(size > 0, size, 1), first) * jnp.asarray(
        report_radius, vector.dtype
    )
    towards = jnp.sum(shown * vector) >= 0
    return jnp.where(towards ^ turns, shown, -shown)


def sphere_radius(dim: int, epsilon: float, radius: float) -> float:
    """The length of `randomize_in_ball`'s reports that makes them unbiased.

    A coordinate of a random unit vector has E|w_1| = Gamma(dim / 2) / (sqrt(pi) Gamma((dim + 1) / 2)), so that a report
    of length B has the mean vector / radius tanh(epsilon / 2) B E|w_1|.

    Args:
        dim: of vectors, >= 2.
        epsilon: > 0; infinity is allowed.
        radius: of the ball.

    Returns:
        radius sqrt(pi) Gamma((dim + 1) / 2) / (Gamma(dim / 2) tanh(epsilon / 2)), in float64.
    """
    log_size = math.lgamma((dim + 1) / 2) - math.lgamma(dim / 2)
    return radius * math.sqrt(math.pi) * math.exp(log_size) / math.tanh(epsilon / 2)


class OnSphere(NamedTuple):
    """A coordinate of a report by `randomize_in_ball`.

    Attributes:
        size: what it is multiplied by.
        report_radius: length of reports.
        bias: tanh(epsilon / 2).
        coordinates: of the vector.
    """

    size: float
    report_radius: float
    bias: float
    coordinates: int

    def range_bound(self, horizon: int, failure_prob: float) -> float:
        """Of the square of a coordinate the law is that of a random unit vector's: Beta(1 / 2, (dim - 1) / 2)."""
        share = failure_prob / horizon / self.coordinates
        return self.size * self.report_radius * math.sqrt(1 - betaincinv((self.coordinates - 1) / 2, 0.5, share))

    def second_moment(self) -> float:
        """As of a random unit vector."""
        return (self.size * self.report_radius) ** 2 / self.coordinates

    def variance_proxy(self) -> float:
        """Of reports of random vectors of any law."""
        return (self.size * self.report_radius) ** 2 * any_proxy(self.coordinates, self.bias)


@functools.lru_cache(maxsize=256)
def fixed_proxy(dim: int, bias: float) -> float:
    """Least s^2, or little more, such that a unit-length report of any one vector less its mean is s^2-sub-Gaussian.

    In any direction the report has the density h(s) (1 + k(s)), where h is that of a random unit vector's coordinate,
    and k(s) is `bias` times |vector| / radius times what P(towards | s) - P(away | s) is: odd, not decreasing, and at
    most `bias`. Given its mean, E exp(l s) is largest for l > 0 where k is `bias` above some c and 0 below, and for
    l < 0 where k is constant (for sinh(l s) / s increases), so that a search over c or that constant, and l, does.

    Args:
        dim: of the vectors, >= 2.
        bias: tanh(epsilon / 2), in (0, 1].

    Returns:
        s^2 in float64, found on a grid and raised by a ten-thousandth; between 1 / dim and 1.13 / (dim - 1).
    """
    places, logs = _half_sphere(dim)
    above = _from_here(np.exp(logs) * places)
    means = 2 * bias * above
    shares = np.linspace(0, 1, 129)
    best = 1 / dim
    for slope in _slopes(dim):
        up, down, shift = _tilted(places, logs, slope)
        rising = _log((up + down).sum() + bias * _from_here(up - down)) - slope * means
        falling = _log((1 - bias * shares) * up.sum() + (1 + bias * shares) * down.sum()) + slope * shares * means[0]
        best = max(best, 2 / slope**2 * (shift + max(rising.max(), falling.max())))
    return best * (1 + SPARE)


@functools.lru_cache(maxsize=256)
def any_proxy(dim: int, bias: float) -> float:
    """As `fixed_proxy`, of reports of random vectors of any law, whose own spread it includes.

    k is odd and at most `bias` in absolute value. Given its mean, E exp(l s) is largest where k is `bias` above some c,
    and -`bias` below.
    """
    places, logs = _half_sphere(dim)
    means = 2 * bias * (_from_here(np.exp(logs) * places) - _up_to_here(np.exp(logs) * places))
    best = 1 / dim
    for slope in _slopes(dim):
        up, down, shift = _tilted(places, logs, slope)
        grown = _from_here((1 + bias) * up + (1 - bias) * down) + _up_to_here((1 - bias) * up + (1 + bias) * down)
        best = max(best, 2 / slope**2 * (shift + float(np.max(_log(grown) - slope * means))))
    return best * (1 + SPARE)


def _half_sphere(dim: int) -> tuple[np.ndarray, np.ndarray]:
    """Places s > 0 of one coordinate of a random unit vector, and logarithms of probabilities that add up to 1 / 2."""
    nodes = max(NODES, int(64 * math.sqrt(dim)))
    angles = (np.arange(nodes) + 0.5) * (math.pi / 2 / nodes)
    logs = (dim - 2) * np.log(np.cos(angles))
    return np.sin(angles), logs - logsumexp(logs) - math.log(2)


def _tilted(places: np.ndarray, logs: np.ndarray, slope: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Probabilities times exp(slope s - shift), and times exp(-slope s - shift); and the shift, that none overflows."""
    up = logs + slope * places
    shift = float(up.max())
    return np.exp(up - shift), np.exp(logs - slope * places - shift), shift


def _slopes(dim: int) -> np.ndarray:
    """Beyond the last one, 4 dim, the trivial bound exp(2 slope) does: no two places are further apart than 2."""
    return np.geomspace(LOWEST, max(HIGHEST, 4 * math.sqrt(dim)), STEPS) * math.sqrt(dim)


def _from_here(terms: np.ndarray) -> np.ndarray:
    """Sums from each term on; the last one is 0."""
    return np.append(np.cumsum(terms[::-1])[::-1], 0.0)


def _up_to_here(terms: np.ndarray) -> np.ndarray:
    """Sums of the terms before each; the first one is 0."""
    return np.append(0.0, np.cumsum(terms))


def _log(positive: np.ndarray) -> np.ndarray:
    """Of what underflows, a number that is too large."""
    return np.log(np.maximum(positive, np.finfo(float).tiny))

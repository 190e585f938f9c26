"""How a contextual user reports what a linear model is fitted from."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import Channel, Scalar, claimed, default_float, factory, scalar_leaf
from jaxdp.mechanisms.additive import gaussian
from jaxdp.mechanisms.calibration import analytic_gaussian
from jaxdp.mechanisms.channel._bounds import Additive, bounds_of
from jaxdp.mechanisms.channel._host import local_claim, rounded_up
from jaxdp.mechanisms.channel.vector import into_ball, norm_error
from jaxdp.validation import check_choice, check_count, check_epsilon, check_positive

REPORTS = ("gaussian",)


class Moments(NamedTuple):
    """What is reported of a context x and its reward y.

    Attributes:
        outer: [dim, dim] float, x x^T with noise; symmetric.
        cross: [dim] float, y x with noise.
    """

    outer: jax.Array
    cross: jax.Array


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class MomentParams:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity reports moments as they are.
        noise_stddev: [] float >= 0, of the noise on x_i^2, on sqrt(2) x_i x_j and on y x_i / reward_bound.
        reward_bound: [] float > 0, rewards are clipped to this absolute value.
    """

    epsilon: Scalar
    noise_stddev: Scalar
    reward_bound: Scalar


@factory
def moment_channel(dim: int, report: str = "gaussian") -> Channel:
    """Reports x x^T and y x of a context x in the unit ball and its reward y, in one release.

    What is noised is the vector of all x_i^2, all sqrt(2) x_i x_j with i < j, and all y x_i / Y, with Y = reward_bound.
    Its Euclidean norm is that of the matrix and the vector themselves (the release is isometric), and it moves by at
    most sqrt(4.5) when a user is replaced. So the matrix has noise of standard deviation s on its diagonal and
    s / sqrt(2) off it, and y x of Y s. At epsilon = inf the report is x x^T and y x.

    Values: `epsilon`, the privacy budget, > 0; `delta`, in (0, 1); `reward_bound`, Y, finite and > 0, by default 1.

    >>> channel = moment_channel(2)
    >>> print(f"{channel.params(epsilon=1.0, delta=1e-5).noise_stddev:.3f}")
    7.914

    Args:
        dim: of contexts, >= 1.
        report: "gaussian", with noise that is analytically calibrated.

    Returns:
        A channel for a pair (x, y) of one user, [dim] and [] floats. A longer x is scaled down to the unit ball, in
        which NaN counts as 0 and infinity as a large number; y is clipped to [-Y, Y], NaN to -Y. A report is
        `Moments` in JAX's default float type, and its own estimate. There is no `total`.

    Raises:
        ValueError: if dim < 1 or report has another name; from `params`, if a value is out of range; from `report`, if
            x or y has another shape.

    Privacy: (epsilon, delta)-DP in the local model; unit: one user's context and reward; adjacency: replace one, by any
        pair. With c = |x.z| the squared distance of the moments of two users is largest for unit vectors x, z and
        rewards Y, -Y (or Y, Y, if x.z < 0), where it is 2 - 2 c^2 + 2 + 2 c <= 4.5, with equality at c = 1/2. The
        sensitivity counts what rounding may add. The user's action is not to be logged beside the report: it depends
        on the context.
    Source: Zheng, Cai, Huang, Li & Wang (2020), Algorithm 5.
    Deviations: the paper releases the two moments separately, with the classical Gaussian mechanism at half the budget
        each, and equal noise on and off the diagonal.
    """
    dim = check_count("dim", dim)
    check_choice("report", report, REPORTS)
    rows, columns = np.triu_indices(dim, 1)
    num_pairs = len(rows)
    place = np.zeros((dim, dim), np.int32)  # of each entry of the matrix in the vector that is noised
    place[np.arange(dim), np.arange(dim)] = np.arange(dim)
    place[rows, columns] = place[columns, rows] = dim + np.arange(num_pairs)
    root = np.where(np.eye(dim, dtype=bool), 1.0, math.sqrt(2))

    def sensitivity() -> float:
        return math.sqrt(4.5) * (1 + 4 * norm_error(dim))

    def params(*, epsilon: float, delta: float, reward_bound: float = 1.0) -> MomentParams:
        budget = scalar_leaf("epsilon", check_epsilon(epsilon))
        bound = scalar_leaf("reward_bound", check_positive("reward_bound", reward_bound))
        stddev = rounded_up("the noise", analytic_gaussian(epsilon, delta, sensitivity()))
        scalar_leaf("the noise of y x", float(stddev) * float(bound))
        return MomentParams(epsilon=budget, noise_stddev=stddev, reward_bound=bound)

    def report_(key, params: MomentParams, value: tuple[ArrayLike, ArrayLike]) -> Moments:
        x, y = (jnp.asarray(part, default_float()) for part in value)  # at once, as for a scalar
        if (x.shape, y.shape) != ((dim,), ()):
            raise ValueError(f"value must be a pair of shapes {(dim,)} and (), got {x.shape} and {y.shape}")
        x, bound = into_ball(x, 1.0, "l2"), jnp.asarray(params.reward_bound, x.dtype)
        y = jnp.where(y > -bound, jnp.minimum(y, bound), -bound)  # NaN is -bound, too
        joint = jnp.concatenate([x * x, math.sqrt(2) * x[rows] * x[columns], y / bound * x])
        noisy = gaussian(key, joint, jnp.asarray(params.noise_stddev), l2_sensitivity=sensitivity())
        shown = Moments(noisy[place] / jnp.asarray(root, x.dtype), noisy[dim + num_pairs :] * bound)
        exact = Moments(x[:, None] * x[None, :], y * x)
        return jax.tree.map(lambda *two: jnp.where(jnp.isinf(params.epsilon), *two), exact, shown)

    def estimate(params: MomentParams, report: Moments) -> Moments:
        del params
        return report

    def spread(params: MomentParams):
        stddev, bound = float(params.noise_stddev), float(params.reward_bound)
        entries = dim + num_pairs + dim
        return (
            Additive(1.0, 0.5, "gaussian", stddev, entries),  # the diagonal; others are smaller
            Additive(bound, bound, "gaussian", stddev * bound, entries),
        )

    argument = "one release of x x^T and y x, clipped, by the analytic Gaussian mechanism at L2 sensitivity sqrt(4.5)"
    claim = local_claim("one user's context and reward", argument, ("report", "public"))
    return Channel(params, claimed(params, claim), report_, estimate, None, *bounds_of(params, spread))

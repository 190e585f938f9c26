"""The local randomizer of the moments of a user's context and reward, from which a linear model is fitted."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from jaxdp.core import LocalRandomizer, Scalar, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms._grid import number_array
from jaxdp.mechanisms.calibration import analytic_gaussian, classical_gaussian
from jaxdp.mechanisms.local_randomizers._ball import OnSphere, fixed_proxy, randomize_in_ball, sphere_radius
from jaxdp.mechanisms.local_randomizers._bounds import Additive, bounds_of
from jaxdp.mechanisms.local_randomizers._float_noise import add_normals
from jaxdp.mechanisms.local_randomizers._host import local_claim, rounded_up
from jaxdp.mechanisms.local_randomizers.vector import into_ball, norm_error
from jaxdp.numerics.kernels import lanes_fast
from jaxdp.numerics.small_linear_algebra import square_triangle, triangle
from jaxdp.validation import check_choice, check_count, check_epsilon, check_positive

REPORTS = ("gaussian", "l2_ball")
CONSTANTS = ("tight", "paper")
RADIUS = math.sqrt(2)  # radius of the ball that contains the moments of one user


class Moments(NamedTuple):
    """The report of a context x and its reward y.

    Attributes:
        outer: [dim * (dim + 1) / 2] float, the symmetric matrix x x^T with noise, as its `triangle` (see
            `jaxdp.numerics.small_linear_algebra`), row by row, each row starting at the diagonal.
        cross: [dim] float, y x with noise.
    """

    outer: jax.Array
    cross: jax.Array


@pytree_dataclass
class MomentParams:
    """Traced values of a moment randomizer. All noise is 0 at epsilon = infinity.

    Attributes:
        epsilon: [] float, privacy budget, > 0; at infinity reports are the moments themselves.
        noise_stddev: [] float >= 0, standard deviation of the Gaussian noise on x_i^2 and on sqrt(2) x_i x_j (on x_i
            x_j with constants="paper"). For "l2_ball" it is the root mean square of each coordinate of a report:
            `report_radius` divided by the root of the number of coordinates.
        cross_stddev: [] float >= 0, standard deviation of the Gaussian noise on y x / reward_bound. For "l2_ball" the
            noise is not Gaussian, but it is sub-Gaussian with this standard deviation in every direction.
        report_radius: [] float, norm of the vector of an "l2_ball" report before it is split into `Moments`; at epsilon
            = infinity it has no effect. 0 for Gaussian reports.
        reward_bound: [] float > 0; rewards are clipped to this magnitude.
    """

    epsilon: Scalar
    noise_stddev: Scalar
    cross_stddev: Scalar
    report_radius: Scalar
    reward_bound: Scalar


@factory
def moment_randomizer(dim: int, report: str = "gaussian", *, constants: str = "tight") -> LocalRandomizer:
    r"""Reports x x^T and y x of a context x in the unit ball and its reward y.

    Let Y = reward_bound. Let v be the vector of all x_i^2 and all sqrt(2) x_i x_j with i < j, row by row, and then all
    y x_i / Y. It has D = dim * (dim + 1) / 2 + dim entries, and a Euclidean norm of at most sqrt(2). If a user is
    replaced, v changes by at most sqrt(4.5). A report is one release of v,

    * "gaussian": with noise of standard deviation s in each entry, so that the matrix has noise s on its diagonal and s
      / sqrt(2) off it, and y x has noise Y s;
    * "l2_ball": as a random vector of mean v on a sphere (see Math). Its root mean square in each entry, tau, is
      smaller than s at delta = 1e-5, up to an epsilon of about 5 to 6. At epsilon = 1 and dim = 5 it is half as large.

    With constants="paper", x x^T and y x are two releases, with equal noise on and off the diagonal. At epsilon = inf
    the report is x x^T and y x.

    Args:
        dim: dimension of contexts, >= 1.
        report: "gaussian" or "l2_ball".
        constants: "tight" for analytically calibrated noise or, only with "gaussian", "paper" for the noise of Zheng et
            al. (2020).

    Returns:
        A randomizer for a pair (x, y) of one user, [dim] and [] floats. An x of norm above 1 is rescaled to norm 1; NaN
        counts as 0 and infinity as a large number. y is clipped to [-Y, Y], and NaN counts as 0. A report is `Moments`
        in JAX's default float type, and the estimate is the report. For Gaussian reports `total` takes sums of
        `exact_moments` (`Moments`) and the number of users, count [], and returns `Moments`.

    Raises:
        ValueError: if dim < 1, report or constants is unknown, or "paper" is combined with "l2_ball". The result's
            `params` raises this error if a value is out of range (with "paper", epsilon must be below 1.5 or infinite).
            `report` raises it if x or y has another shape.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian noise, in (0, 1).
        reward_bound: Y, finite and > 0, by default 1.

    Privacy:
        - Claim: (epsilon, delta)-DP ("gaussian") or epsilon-DP ("l2_ball") in the local model.
        - Unit: one user's context and reward; adjacency: replace one, by any pair.
        - Sensitivity: Let a = |x.z|. The squared distance of the moments of two users is largest for unit vectors x, z
          and rewards Y, -Y (or Y, Y, if x.z < 0), where it is 2 - 2 a^2 + 2 + 2 a <= 4.5, with equality at a = 1/2. The
          noise also covers errors of float arithmetic in the moments.
        - "l2_ball": see `randomize_in_ball`, where the proof holds for floats.
        - With "paper", x x^T gets a third of epsilon at sensitivity 2, and y x two thirds at sensitivity 2 Y, each with
          delta / 2; the budgets add up. The classical formula is proven only if both parts of epsilon are below 1.
        - The user's action must not be logged together with the report, because the action depends on the context.

    Source:
        Zheng, Cai, Huang, Li & Wang (2020), Algorithm 5, for the moments and for constants="paper"; Duchi, Jordan &
        Wainwright (2018), section 4.2.3, for the ball.

    Deviations:
        Zheng et al. release the two moments separately, with the classical Gaussian mechanism and equal noise on and
        off the diagonal. "paper" does the same, for any Y (theirs is 2). They say that Laplace noise would give pure
        privacy, without a proof; here only "l2_ball" has pure privacy. Gaussian noise is added in floats, not on a grid
        as in `gaussian`; the claim ignores the rounding of the sum. In float32, noise never exceeds 6.7 standard
        deviations.

    Math:
        For "gaussian" the report is

        $$
        v + Z, \quad Z \sim N(0, s^2 I)
        $$

        with $s$ calibrated to the $L_2$ sensitivity $\sqrt{4.5}$. For "l2_ball" it is uniform on the half of the sphere
        of radius $B$ on the side of $v$, with probability $1/2 + |v| / (\sqrt{8} c)$, and otherwise on the other half,
        with

        $$
        B = \sqrt{2 \pi} c \frac{\Gamma((D + 1) / 2)}{\Gamma(D / 2)}, \quad
        c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}, \quad \tau = \frac{B}{\sqrt{D}}
        $$

        where $\tau$ is the root mean square of each entry, and $D$ the number of entries of $v$. The mean of the
        report's outer product is $\tau^2 I$.

    Examples:
        >>> for report, delta in (("gaussian", {"delta": 1e-5}), ("l2_ball", {})):
        ...     print(f"{moment_randomizer(5, report).params(epsilon=1.0, **delta).noise_stddev:.3f}")
        7.914
        3.788
    """
    dim = check_count("dim", dim)
    is_ball = check_choice("report", report, REPORTS) == "l2_ball"
    is_paper = check_choice("constants", constants, CONSTANTS) == "paper"
    if is_ball and is_paper:
        raise ValueError('constants must be "tight" for reports from the ball, got "paper"')
    num_outer = dim * (dim + 1) // 2
    num_entries = num_outer + dim
    # factors of the entries of the triangle of x x^T before the noise: 1 on the diagonal, sqrt(2) off it
    root = np.asarray(triangle(np.where(np.eye(dim, dtype=bool), 1.0, 1.0 if is_paper else math.sqrt(2))))

    def sensitivity(exact: float) -> float:
        return exact * (1 + 4 * norm_error(dim))

    def params(*, epsilon: float, delta: float = 0.0, reward_bound: float = 1.0) -> MomentParams:
        budget = scalar_leaf("epsilon", check_epsilon(epsilon))
        bound = scalar_leaf("reward_bound", check_positive("reward_bound", reward_bound))
        report_radius = sphere_radius(num_entries, epsilon, RADIUS) if is_ball else 0.0
        if is_ball:
            spread = 0.0 if math.isinf(epsilon) else report_radius
            outer = spread / math.sqrt(num_entries)
            cross = spread * math.sqrt(fixed_proxy(num_entries, math.tanh(epsilon / 2)))
        elif is_paper:
            if 1.5 <= epsilon < math.inf:
                raise ValueError(
                    f"epsilon must be < 1.5 (or inf) with the paper's constants, got {epsilon}: y x gets two thirds of "
                    'epsilon, and the classical formula is proved only below 1; use constants="tight"'
                )
            outer = classical_gaussian(epsilon / 3, delta / 2, sensitivity(2.0))
            cross = classical_gaussian(epsilon * 2 / 3, delta / 2, sensitivity(2.0))
        else:
            outer = cross = analytic_gaussian(epsilon, delta, sensitivity(math.sqrt(4.5)))
        point = MomentParams(
            epsilon=budget,
            noise_stddev=rounded_up("the noise", outer),
            cross_stddev=rounded_up("the noise", cross),
            report_radius=scalar_leaf("the reports' radius", report_radius),
            reward_bound=bound,
        )
        scalar_leaf("the noise of y x", max(report_radius, float(point.cross_stddev)) * float(bound))
        return point

    def add_noise(key: jax.Array, params: MomentParams, vector: jax.Array, scale: jax.Array | float) -> jax.Array:
        """Adds noise, with `scale` times one report's standard deviation, to a vector of moments or sums of moments."""
        outer, cross = (scale * jnp.asarray(part, vector.dtype) for part in (params.noise_stddev, params.cross_stddev))
        if not is_paper:
            return add_normals(key, vector, outer, sensitivity(math.sqrt(4.5)))
        key_outer, key_cross = jax.random.split(key)
        parts = (key_outer, vector[:num_outer], outer), (key_cross, vector[num_outer:], cross)
        return jnp.concatenate(
            [add_normals(part_key, part, stddev, sensitivity(2.0)) for part_key, part, stddev in parts]
        )

    def to_moments(params: MomentParams, noisy: jax.Array, exact: Moments) -> Moments:
        """Returns the moments of the noisy vector, or the exact moments at epsilon = inf."""
        bound = jnp.asarray(params.reward_bound, noisy.dtype)
        moments = Moments(noisy[:num_outer] / jnp.asarray(root, noisy.dtype), noisy[num_outer:] * bound)
        return jax.tree.map(lambda *two: jnp.where(jnp.isinf(params.epsilon), *two), exact, moments)

    def report_(key, params: MomentParams, value: tuple[ArrayLike, ArrayLike]) -> Moments:
        x, y = _clip(dim, params, value)
        outer = square_triangle(x) * jnp.asarray(root, x.dtype)
        joint = lanes_fast(jnp.concatenate([outer, y / jnp.asarray(params.reward_bound, x.dtype) * x]))
        if is_ball:
            noisy = randomize_in_ball(key, joint, params.epsilon, radius=RADIUS, report_radius=params.report_radius)
        else:
            noisy = add_noise(key, params, joint, 1.0)
        return to_moments(params, noisy, _moments(x, y))

    def estimate(params: MomentParams, report: Moments) -> Moments:
        del params
        return report

    def total(key, params: MomentParams, totals: Moments, count: ArrayLike) -> Moments:
        outer, cross = (jnp.asarray(part, default_float()) for part in totals)
        bound = jnp.asarray(params.reward_bound, cross.dtype)
        joint = jnp.concatenate([outer * jnp.asarray(root, outer.dtype), cross / bound])
        noisy = add_noise(key, params, joint, jnp.sqrt(jnp.asarray(count, joint.dtype)))
        return to_moments(params, noisy, Moments(outer, cross))

    def spread(params: MomentParams):
        outer, cross, bound = (float(leaf) for leaf in (params.noise_stddev, params.cross_stddev, params.reward_bound))
        if is_ball and math.isfinite(params.epsilon):
            bias = math.tanh(float(params.epsilon) / 2)
            return (OnSphere(max(1.0, bound), float(params.report_radius), bias, num_entries),)
        return (
            Additive(1.0, 0.5, "gaussian", outer, num_entries),  # the diagonal; other entries are smaller
            Additive(bound, bound, "gaussian", cross * bound, num_entries),
        )

    values = only(params, ("epsilon", "reward_bound") if is_ball else ("epsilon", "delta", "reward_bound"))
    argument = "one release of x x^T and y x, clipped, by the analytic Gaussian mechanism at L2 sensitivity sqrt(4.5)"
    if is_paper:
        argument = (
            "x x^T for a third of epsilon and y x for two thirds, clipped, each by the classical Gaussian mechanism at "
            "delta / 2"
        )
    if is_ball:
        argument = (
            "one release of x x^T and y x, clipped: a random point of a sphere or the opposite point, each with "
            "probability at least 1 / (1 + e^epsilon)"
        )
    claim = local_claim("one user's context and reward", argument, ("report", "public"))
    return LocalRandomizer(
        values,
        guarantee_for(values, claim),
        report_,
        estimate,
        None if is_ball else total,
        *bounds_of(values, spread),
    )


def exact_moments(params: MomentParams, value: tuple[ArrayLike, ArrayLike]) -> Moments:
    """Returns the exact moments of one user's clipped context and reward, without noise. They are secret.

    Args:
        params: parameters of a `moment_randomizer`.
        value: (x, y) as for its `report`.

    Returns:
        x x^T and y x, as `Moments`. `LocalRandomizer.total` takes sums of them over users.
    """
    return _moments(*_clip(np.size(value[0]), params, value))


def _moments(x: jax.Array, y: jax.Array) -> Moments:
    return Moments(square_triangle(x), y * x)


def _clip(dim: int, params: MomentParams, value: tuple[ArrayLike, ArrayLike]) -> tuple[jax.Array, jax.Array]:
    x, y = (number_array("value", part, default_float()) for part in value)  # before arithmetic, as for a scalar
    if (x.shape, y.shape) != ((dim,), ()):
        raise ValueError(f"value must be a pair of shapes {(dim,)} and (), got {x.shape} and {y.shape}")
    bound = jnp.asarray(params.reward_bound, x.dtype)
    return into_ball(x, 1.0, "l2"), jnp.clip(jnp.where(jnp.isnan(y), 0, y), -bound, bound)

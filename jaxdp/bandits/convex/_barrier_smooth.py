"""Follow the regularised leader with a self-concordant barrier, for smooth convex losses, from one loss per round."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._reports import feedback_privatizer, local_claim, value_names
from jaxdp.bandits.convex._ball import convex_interface
from jaxdp.bandits.convex._ball_kernels import unit_vector
from jaxdp.bandits.convex._domain import checked_domain
from jaxdp.bandits.convex._reports import UNIT, randomizer_values
from jaxdp.core import Learner, Scalar, State, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams, scalar_randomizer
from jaxdp.numerics import compensated
from jaxdp.numerics.rounding import round_product
from jaxdp.validation import check_horizon, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces. Section Math of `barrier_smooth` defines the symbols.

    Attributes:
        randomizer: parameters of the randomizer, for losses in [-loss_bound, loss_bound].
        exploration: [] float in (0, 1], rho, the distance between the played point and x, as a fraction of the radius
            of the Dikin ellipsoid at x.
        step: [] float > 0, eta d / rho^2.
    """

    randomizer: ScalarParams
    exploration: Scalar
    step: Scalar


class Public(NamedTuple):
    """Public state, computed from the reports.

    Attributes:
        slope: [dim] float, stored as a compensated sum: eta R times the sum of estimated gradients.
    """

    slope: compensated.Sum


@factory
def barrier_smooth(*, dim: int, horizon: int, radius: float = 1.0, report: str = "rr", domain: str = "ball") -> Learner:
    r"""Follows the leader regularised by a self-concordant barrier, with one-point gradient estimates (Saha & Tewari).

    The learner plays x + rho A u (see Math), where u is a random direction and A the inverse square root of the
    barrier's Hessian at x. This point lies in the domain, because the ellipsoid of all x + A v with |v| <= 1 does. From
    the report of the loss at this point, the learner estimates the gradient. The next x is the minimiser of eta <sum of
    estimated gradients, x> plus the barrier, which has a closed form. The expected regret is of order T^(2/3) M2^(1/3),
    where M2 is the second moment of a report.

    Args:
        dim: dimension of points d, >= 1.
        horizon: rounds T, >= 2.
        radius: radius of the domain R, finite and > 0.
        report: the randomizer of a loss, as for `scalar_randomizer`: "rr", "laplace" or "gaussian".
        domain: "ball", the points of norm at most R; or "box", the points with entries in [-R, R].

    Returns:
        A learner that plays points of the domain ([dim] float). Feedback is the loss, [] float; NaN counts as
        -loss_bound.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        smoothness: beta > 0, by default 1: losses have beta-Lipschitz gradients.
        loss_bound: B > 0, by default 1: losses are clipped to [-B, B].
        delta: with Gaussian reports, in (0, 1).
        failure_prob: with Gaussian or Laplace reports, in (0, 1), by default 0.05: a bound on the probability that
            some report exceeds the range M in absolute value (see Math).

    Privacy:
        - Claim: epsilon-DP ("rr", "laplace") or (epsilon, delta)-DP ("gaussian") in the local model.
        - Unit: one round's loss function; adjacency: replace one.
        - Why: A loss is clipped and reported once, on the user's device. The point at which it is evaluated is public.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Saha & Tewari (2011), Algorithm 1, for any self-concordant barrier. On reports: LDP-Bandits (Zheng, Cai, Huang,
        Li & Wang, 2020), Algorithm 1.

    Deviations:
        As for `fkm`, losses are clipped, and by default reported by randomized response. eta is tuned to the report's
        second moment. The proof needs eta d M <= rho / 2. If the tuned eta is larger, which happens for T < 2 theta ln
        T M^2 / M2, it is reduced to this limit. The regret bound (see Math) also holds for the reduced eta. The sum of
        gradients is compensated.

    Math:
        The barrier $F$ is $-\ln(1 - |x|^2 / R^2)$ on a ball, with the parameter $\theta = 1$; on a box it is the sum of
        $-\ln(1 - x_i^2 / R^2)$, with $\theta = d$. Round $t$ plays $x_t + \rho A_t u_t$, with
        $A_t = (\nabla^2 F(x_t))^{-1/2}$ and $u_t$ uniform on the unit sphere. With $y_t$ the report of the loss,

        $$
        g_t = \frac{d}{\rho} y_t A_t^{-1} u_t, \quad
        x_{t+1} = \operatorname{argmin}_x \; \eta \sum_{s \le t} g_s^\top x + F(x)
        $$

        With $M_2$ the second moment of a report and $M$ its range,

        $$
        \rho = \min\Big( 1, \;
        \Big( \frac{2 \sqrt{2} d \sqrt{\theta M_2 \ln T / T}}{\beta R^2} \Big)^{1 / 3} \Big), \quad
        \eta = \min\Big( \rho \sqrt{\frac{\theta \ln T}{2 T d^2 M_2}}, \; \frac{\rho}{2 d M} \Big)
        $$

        The expected regret is at most

        $$
        \frac{\theta \ln T}{\eta} + \frac{2 \eta T d^2 M_2}{\rho^2} + \frac{\beta \rho^2 R^2 T}{2} + 2 B
        $$

        where $R^2$ is in the bias because no eigenvalue of the barrier's Hessian is below $2 / R^2$.
    """
    randomizer, rounds = scalar_randomizer(report), check_horizon(horizon, minimum=2)
    body = checked_domain(domain, dim, radius)
    interface = convex_interface(body.points, "point")

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        smoothness: float = 1.0,
        loss_bound: float = 1.0,
        failure_prob: float = 0.05,
    ) -> Params:
        randomizer_inputs = randomizer_values(report, epsilon, delta, "loss_bound", loss_bound)
        reports, moment = randomizer.params(**randomizer_inputs), randomizer.second_moment(**randomizer_inputs)
        curvature_bound = check_positive("smoothness", smoothness) * body.radius * body.radius  # beta R^2
        logarithm = body.barrier_parameter * math.log(rounds)  # theta ln T
        exploration = min(
            1.0, math.cbrt(2 * math.sqrt(2) * body.dim * math.sqrt(moment * logarithm / rounds) / curvature_bound)
        )
        rate = exploration * math.sqrt(logarithm / (2 * rounds * body.dim**2 * moment))
        largest = exploration / (
            2 * body.dim * randomizer.range_bound(rounds, failure_prob, **randomizer_inputs)
        )  # rho / (2 d M)
        return Params(
            randomizer=reports,
            exploration=scalar_leaf("rho", exploration),
            step=scalar_leaf("eta d / rho^2", min(rate, largest) * body.dim / exploration**2),
        )

    def init(key, params: Params) -> State:
        del key, params
        return State((), Public(compensated.zero(jnp.zeros(body.dim, default_float()))))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        leader = body.minimize(public.slope.total)
        return body.radius * (leader.x + params.exploration * leader.apply_inverse_root(unit_vector(key, body.dim)))

    def update(key, params: Params, state: State, report) -> State:
        del key
        slope, (point, reported) = state.public.slope, report
        leader = body.minimize(slope.total)
        # In units with R = 1, A^(-1) u is the Hessian A^(-2) times the offset rho A u, divided by rho. So eta R times
        # the estimated gradient is y eta d / rho^2 times the Hessian times the offset.
        gradient = leader.apply_hessian(point / body.radius - leader.x)
        scale = params.step * randomizer.estimate(params.randomizer, reported)
        return State((), Public(compensated.add(slope, round_product(scale * gradient))))

    tail_values = () if report == "rr" else ("failure_prob",)
    values = only(params, value_names(report, "smoothness", "loss_bound", *tail_values))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, local_claim(report, UNIT)),
        init=init,
        act=act,
        privatize=feedback_privatizer(randomizer.report, "randomizer"),
        update=update,
        horizon=rounds,
        interface=interface,
    )

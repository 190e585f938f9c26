"""Follow the regularised leader with a self-concordant barrier, for smooth and strongly convex losses."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._reports import feedback_privatizer, local_claim, value_names
from jaxdp.bandits.convex._ball import convex_interface
from jaxdp.bandits.convex._ball_kernels import unit_vector
from jaxdp.bandits.convex._domain import BarrierPoint, checked_domain
from jaxdp.bandits.convex._reports import UNIT, randomizer_values
from jaxdp.core import Learner, Scalar, State, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams, scalar_randomizer
from jaxdp.numerics import compensated
from jaxdp.numerics.rounding import round_product
from jaxdp.validation import check_at_least, check_horizon, check_number, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces. Section Math of `barrier_strongly_convex` defines the symbols.

    Attributes:
        randomizer: parameters of the randomizer, for losses in [-loss_bound, loss_bound].
        step: [] float > 0, eta d.
        curvature: [] float > 0, eta mu R^2.
    """

    randomizer: ScalarParams
    step: Scalar
    curvature: Scalar


class Public(NamedTuple):
    """Public state, computed from the reports.

    Attributes:
        round: [] integer, rounds played.
        slope: [dim] float, stored as a compensated sum: eta R times the sum over rounds s of g_s - mu x_s.
    """

    round: jax.Array
    slope: compensated.Sum


@factory
def barrier_strongly_convex(
    *, dim: int, horizon: int, radius: float = 1.0, report: str = "rr", domain: str = "ball"
) -> Learner:
    r"""Follows the leader regularised by a self-concordant barrier and the curvature of the losses (Hazan & Levy).

    The learner plays a random point near the iterate x, at a distance that shrinks as the curvature accumulates over
    rounds (see Math). From the report of the loss at this point, the learner estimates the gradient. The next iterate
    minimises a sum of terms: the barrier of `barrier_smooth` divided by eta and, for each past round s with estimated
    gradient g_s and iterate x_s, the term <g_s, x> + mu |x - x_s|^2 / 2.

    Args:
        dim: as for `barrier_smooth`.
        horizon: as for `barrier_smooth`.
        radius: as for `barrier_smooth`.
        report: as for `barrier_smooth`.
        domain: as for `barrier_smooth`.

    Returns:
        A learner as for `barrier_smooth`.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range
            or smoothness < strong_convexity.

    Values:
        epsilon, smoothness, loss_bound, delta, failure_prob: as for `barrier_smooth`.
        strong_convexity: mu > 0, by default 1; at most the smoothness beta.

    Privacy:
        - As `barrier_smooth`.

    Source:
        Hazan & Levy (2014), Algorithm 1, for any self-concordant barrier. On reports: LDP-Bandits (Zheng, Cai, Huang,
        Li & Wang, 2020), Algorithm 1.

    Deviations:
        As for `fkm`, losses are clipped, and by default reported by randomized response. eta is tuned to the range of
        reports, not to the range of losses. The proof needs eta d M <= 1 / 2. So eta is reduced to this limit if it is
        larger, which happens for T / ln T < 2 (theta + 2 beta / mu). The distance of x from the centre (on a box: each
        coordinate) is the root of an equation in one unknown, computed by Newton's method with a fixed number of steps.
        The sum of gradients is compensated.

    Math:
        With the barrier $F$ of `barrier_smooth`, round $t$ plays $x_t + B_t u_t$, where $u_t$ is uniform on the unit
        sphere and $B_t = (\nabla^2 F(x_t) + \eta \mu t I)^{-1/2}$. With $y_t$ the report of the loss and
        $g_t = d y_t B_t^{-1} u_t$,

        $$
        x_{t+1} = \operatorname{argmin}_x
        \sum_{s \le t} \Big( g_s^\top x + \frac{\mu}{2} |x - x_s|^2 \Big) + \frac{F(x)}{\eta}
        $$

        With $M$ the range of a report and $\theta$ the parameter of the barrier $F$,

        $$
        \eta = \min\Big( \sqrt{\frac{(\theta + 2 \beta / \mu) \ln T}{2 d^2 M^2 T}}, \; \frac{1}{2 d M} \Big)
        $$

        If $T / \ln T \ge 2 (\theta + 2 \beta / \mu)$, the expected regret is of order

        $$
        d M \sqrt{(\theta + 2 \beta / \mu) T \ln T}
        $$
    """
    randomizer, rounds = scalar_randomizer(report), check_horizon(horizon, minimum=2)
    body = checked_domain(domain, dim, radius)
    interface = convex_interface(body.points, "point")

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        strong_convexity: float = 1.0,
        smoothness: float = 1.0,
        loss_bound: float = 1.0,
        failure_prob: float = 0.05,
    ) -> Params:
        randomizer_inputs = randomizer_values(report, epsilon, delta, "loss_bound", loss_bound)
        reports, largest = (
            randomizer.params(**randomizer_inputs),
            randomizer.range_bound(rounds, failure_prob, **randomizer_inputs),
        )
        mu = check_positive("strong_convexity", strong_convexity)
        beta = check_number("smoothness", check_at_least("smoothness", smoothness, mu))
        factor = body.barrier_parameter + 2 * beta / mu  # theta + 2 beta / mu
        tuned = math.sqrt(factor * math.log(rounds) / (2 * rounds)) / (body.dim * largest)
        eta = min(tuned, 1 / (2 * body.dim * largest))
        return Params(
            randomizer=reports,
            step=scalar_leaf("eta d", eta * body.dim),
            curvature=scalar_leaf("eta mu R^2", eta * mu * body.radius * body.radius),
        )

    def init(key, params: Params) -> State:
        del key, params
        slope = compensated.zero(jnp.zeros(body.dim, default_float()))
        return State((), Public(jnp.zeros((), jnp.result_type(int)), slope))

    def iterate(params: Params, public: Public) -> BarrierPoint:
        """Returns x_t / R after t - 1 rounds, with the Hessian R^2 B_t^(-2) at this point."""
        # The point is computed with the curvature of t - 1 rounds, and its Hessian with the curvature of t rounds.
        played = public.round.astype(default_float())  # t - 1
        return body.minimize(public.slope.total, params.curvature * played).add_curvature(
            params.curvature * (played + 1)
        )

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        leader = iterate(params, public)
        return body.radius * (leader.x + leader.apply_inverse_root(unit_vector(key, body.dim)))

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (point, reported) = state.public, report
        leader = iterate(params, public)
        # The point played is x + B u. In units with R = 1, B^(-1) u is B^(-2) times the offset B u. So eta R times the
        # estimated gradient is y eta d times this product.
        gradient = leader.apply_hessian(point / body.radius - leader.x)
        loss = randomizer.estimate(params.randomizer, reported)
        change = round_product(params.step * loss * gradient) - round_product(params.curvature * leader.x)
        return State((), Public(public.round + 1, compensated.add(public.slope, change)))

    tail_values = () if report == "rr" else ("failure_prob",)
    values = only(params, value_names(report, "strong_convexity", "smoothness", "loss_bound", *tail_values))
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

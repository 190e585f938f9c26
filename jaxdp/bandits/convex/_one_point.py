"""Gradient descent with one-point gradient estimates: each round observes one loss, at a point near the iterate."""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._reports import feedback_privatizer, local_claim, value_names
from jaxdp.bandits.convex._ball import convex_interface
from jaxdp.bandits.convex._ball_kernels import unit_vector
from jaxdp.bandits.convex._domain import Domain, checked_domain
from jaxdp.bandits.convex._reports import UNIT, randomizer_values
from jaxdp.core import Learner, Scalar, State, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams, scalar_randomizer
from jaxdp.numerics import compensated
from jaxdp.validation import check_horizon, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces. Section Math of `fkm` defines the symbols.

    Attributes:
        randomizer: parameters of the randomizer, for losses in [-loss_bound, loss_bound].
        exploration: [] float, rho, the distance from the iterate to the point played.
        step: [] float, eta d / rho, the distance by which a report of 1 moves the iterate; for strongly convex losses,
            this distance multiplied by t.
    """

    randomizer: ScalarParams
    exploration: Scalar
    step: Scalar


class Public(NamedTuple):
    """Public state, computed from the reports.

    Attributes:
        round: [] integer, rounds played.
        x: [dim] float, the iterate, stored as a compensated sum.
    """

    round: jax.Array
    x: compensated.Sum


def start(dim: int) -> State:
    """Returns the state before the first round, with the iterate at the centre."""
    x = compensated.zero(jnp.zeros(dim, default_float()))
    return State((), Public(jnp.zeros((), jnp.result_type(int)), x))


@factory
def fkm(*, dim: int, horizon: int, radius: float = 1.0, report: str = "rr", domain: str = "ball") -> Learner:
    r"""Descends by one-point gradient estimates (Flaxman, Kalai & McMahan), for convex losses on a ball or a box.

    The learner plays x + rho u, where u is a random direction. The estimate of the gradient is (d / rho) y u, where y
    is the report of the loss at this point. The learner subtracts eta times this estimate from x, and projects x onto
    the ball or box of radius R - rho (see Math). The expected regret is of order T^(3/4) M2^(1/4), where M2 bounds the
    second moment of a report.

    Args:
        dim: dimension of points d, >= 1.
        horizon: rounds T, >= 1.
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
        delta: with Gaussian reports, in (0, 1).
        loss_bound: > 0, by default 1: losses are clipped to [-loss_bound, loss_bound].
        lipschitz: G > 0, by default 1: the Lipschitz constant of losses.

    Privacy:
        - Claim: epsilon-DP ("rr", "laplace") or (epsilon, delta)-DP ("gaussian") in the local model.
        - Unit: one round's loss function; adjacency: replace one.
        - Why: A loss is clipped and reported once, on the user's device. The point at which it is evaluated is public.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Flaxman, Kalai & McMahan (2005); on reports: LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020), Algorithm 1.

    Deviations:
        Losses are clipped, and by default reported by randomized response; Zheng et al. add Gaussian noise, calibrated
        by the classical formula, to unclipped losses. The step size is tuned to the second moment of the report and not
        to the loss's bound, so regret grows with the square root of the report's magnitude, not in proportion to the
        magnitude. The constants depend on the domain through D and D / R. x is a compensated sum.

    Math:
        Round $t$ plays $x_t + \rho u_t$, with $u_t$ uniform on the unit sphere. With $y_t$ the report of the loss,

        $$
        x_{t+1} = \Pi\Big( x_t - \eta \frac{d}{\rho} y_t u_t \Big)
        $$

        where $\Pi$ projects onto the ball, or box, of radius $R - \rho$. With $M_2$ a bound on the second moment of a
        report, $G$ the Lipschitz constant, $D = R$ on a ball and $D = R \sqrt{d}$ on a box, and $s = 3 + D / R$,

        $$
        \rho = \min\Big( R, \; \sqrt{\frac{D d \sqrt{M_2}}{s G}} \; T^{-1/4} \Big), \quad
        \eta = \frac{D \rho}{d \sqrt{M_2 T}}
        $$

        The expected regret is at most

        $$
        \frac{D d \sqrt{M_2 T}}{\rho} + s G \rho T
        $$
    """
    body = checked_domain(domain, dim, radius)
    randomizer, rounds = scalar_randomizer(report), check_horizon(horizon)

    def params(*, epsilon: float, delta: float = 0.0, loss_bound: float = 1.0, lipschitz: float = 1.0) -> Params:
        randomizer_inputs = randomizer_values(report, epsilon, delta, "loss_bound", loss_bound)
        reports, size = randomizer.params(**randomizer_inputs), math.sqrt(randomizer.second_moment(**randomizer_inputs))
        cost = body.exploration_cost * check_positive("lipschitz", lipschitz)  # s G
        tuned = math.sqrt(body.reach * body.dim * size / cost) * rounds**-0.25
        return Params(
            randomizer=reports,
            exploration=scalar_leaf("rho", min(body.radius, tuned)),
            step=scalar_leaf("eta d / rho", body.reach / (size * math.sqrt(rounds))),
        )

    values = only(params, value_names(report, "loss_bound", "lipschitz"))
    return _learner(body, rounds, report, values, lambda params, round_: params.step)


@factory
def strongly_convex_one_point(
    *, dim: int, horizon: int, radius: float = 1.0, report: str = "rr", domain: str = "ball"
) -> Learner:
    r"""Descends like `fkm`, with step size eta = 1 / (mu t) in round t, for strongly convex losses with constant mu.

    The expected regret is of order T^(2/3) M2^(1/3), where M2 bounds the second moment of a report.

    Args:
        dim: as for `fkm`.
        horizon: as for `fkm`.
        radius: as for `fkm`.
        report: as for `fkm`.
        domain: as for `fkm`.

    Returns:
        A learner as from `fkm`.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon, delta, loss_bound, lipschitz: as for `fkm`.
        strong_convexity: mu > 0, by default 1.

    Privacy:
        - As `fkm`.

    Source:
        Agarwal, Dekel & Xiao (2010), who discuss one-point estimates briefly; on reports: LDP-Bandits (Zheng, Cai,
        Huang, Li & Wang, 2020), Algorithm 1.

    Deviations:
        Losses are clipped, and by default reported by randomized response; Zheng et al. add Gaussian noise, calibrated
        by the classical formula, to unclipped losses. rho is tuned to the second moment of the report and not to the
        loss's bound. The constants depend on the domain through D / R. x is a compensated sum.

    Math:
        Round $t$ plays $x_t + \rho u_t$, and with the symbols of `fkm`

        $$
        x_{t+1} = \Pi\Big( x_t - \frac{1}{\mu t} \frac{d}{\rho} y_t u_t \Big), \quad
        \rho = \min\Big( R, \; \Big( \frac{d^2 M_2 (1 + \ln T)}{s \mu G T} \Big)^{1 / 3} \Big)
        $$

        The expected regret is at most

        $$
        \frac{d^2 M_2 (1 + \ln T)}{2 \mu \rho^2} + s G \rho T
        $$
    """
    body = checked_domain(domain, dim, radius)
    randomizer, rounds = scalar_randomizer(report), check_horizon(horizon)

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        loss_bound: float = 1.0,
        lipschitz: float = 1.0,
        strong_convexity: float = 1.0,
    ) -> Params:
        randomizer_inputs = randomizer_values(report, epsilon, delta, "loss_bound", loss_bound)
        reports, moment = randomizer.params(**randomizer_inputs), randomizer.second_moment(**randomizer_inputs)
        mu = check_positive("strong_convexity", strong_convexity)
        scale = body.exploration_cost * mu * check_positive("lipschitz", lipschitz) * rounds  # s mu G T
        tuned = math.cbrt(body.dim**2 * moment * (1 + math.log(rounds)) / scale)
        rho = min(body.radius, tuned)
        return Params(
            randomizer=reports,
            exploration=scalar_leaf("rho", rho),
            step=scalar_leaf("d / (mu rho)", body.dim / (mu * rho)),
        )

    def step(params: Params, round_: jax.Array) -> jax.Array:
        return params.step / (round_ + 1).astype(default_float())

    values = only(params, value_names(report, "loss_bound", "lipschitz", "strong_convexity"))
    return _learner(body, rounds, report, values, step)


def _learner(
    body: Domain,
    horizon: int,
    report: str,
    params: Callable[..., Params],
    step: Callable[[Params, jax.Array], Scalar],
) -> Learner:
    """Returns the learner on the domain `body`; `step` maps (params, rounds played) to the next round's eta d / rho."""
    randomizer = scalar_randomizer(report)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        return public.x.total + params.exploration * unit_vector(key, body.dim)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public: Public = state.public
        point, reported = report
        loss, direction = (
            randomizer.estimate(params.randomizer, reported),
            (point - public.x.total) / params.exploration,
        )
        move = -(step(params, public.round) * loss) * direction  # - eta (d / rho) y u
        x = body.descend(public.x, move, body.radius - jnp.asarray(params.exploration))
        return State((), Public(public.round + 1, x))

    return Learner(
        params=params,
        guarantee=guarantee_for(params, local_claim(report, UNIT)),
        init=lambda key, params: start(body.dim),
        act=act,
        privatize=feedback_privatizer(randomizer.report, "randomizer"),
        update=update,
        horizon=horizon,
        interface=convex_interface(body.points, "point"),
    )

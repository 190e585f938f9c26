"""Gradient descent with two-point gradient estimates: each round observes the difference of two losses."""

import math

import jax.numpy as jnp

from jaxdp.bandits._reports import local_claim, value_names
from jaxdp.bandits.convex._ball import convex_interface
from jaxdp.bandits.convex._ball_kernels import unit_vector
from jaxdp.bandits.convex._domain import checked_domain
from jaxdp.bandits.convex._one_point import Public, start
from jaxdp.bandits.convex._reports import UNIT, randomizer_values
from jaxdp.core import Learner, Probe, Scalar, State, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams, scalar_randomizer
from jaxdp.validation import check_choice, check_horizon, check_positive

LOSSES = ("convex", "strongly_convex")
CONSTANTS = ("tuned", "paper")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces. Section Math of `two_point` defines the symbols.

    Attributes:
        randomizer: parameters of the randomizer, for slopes in [-lipschitz, lipschitz].
        exploration: [] float, rho, half the distance between the two points.
        step: [] float, eta d, the distance by which a report of 1 moves the iterate; for strongly convex losses, this
            distance multiplied by t.
    """

    randomizer: ScalarParams
    exploration: Scalar
    step: Scalar


@factory
def two_point(
    *,
    dim: int,
    horizon: int,
    radius: float = 1.0,
    losses: str = "convex",
    report: str = "rr",
    constants: str = "tuned",
    domain: str = "ball",
) -> Learner:
    r"""Descends by two-point gradient estimates, which use the losses at x + rho u and x - rho u, on a ball or a box.

    Here x is the iterate and u a random direction. The user reports the slope b / (2 rho), where b is the difference of
    the two losses. Given the report y, the learner subtracts eta d y u from x, and projects x onto the ball or box of
    radius R - rho (see Math). Regret is defined by the mean loss of the two points.

    Args:
        dim: dimension of points d, >= 1.
        horizon: rounds T, >= 2.
        radius: radius of the domain R, finite and > 0.
        losses: "convex" or "strongly_convex".
        report: the randomizer of a slope, as for `scalar_randomizer`: "rr", "laplace" or "gaussian".
        constants: "tuned": as in Math. "paper": for every report, eta = 1 / sqrt(T) (strongly convex: 1 / (mu t)) and
            rho = min(R, ln T / T).
        domain: "ball", the points of norm at most R; or "box", the points with entries in [-R, R].

    Returns:
        A learner that plays `Probe(x, rho u)`, with both points in the domain. Feedback is f(x + rho u) - f(x - rho u),
        [] float; NaN counts as the smallest difference.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        lipschitz: G > 0, by default 1: the slope is clipped to [-G, G], so the difference of losses is clipped to [-2
            rho G, 2 rho G].
        strong_convexity: mu > 0, by default 1; only for strongly convex losses.

    Privacy:
        - Claim: epsilon-DP ("rr", "laplace") or (epsilon, delta)-DP ("gaussian") in the local model.
        - Unit: one round's loss function; adjacency: replace one.
        - Why: Only one number leaves the device, the report of the clipped slope. The two points are public.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Agarwal, Dekel & Xiao (2010); on reports: LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020), Algorithm 2.

    Deviations:
        Slopes are clipped, and by default reported by randomized response; Zheng et al. add Gaussian noise. For convex
        losses, the step size is tuned to the second moment of the report. Their step size is not, and has regret of
        order d^2 sqrt(T) / epsilon^2, although d sqrt(T) / epsilon is possible. Gaussian noise is calibrated
        analytically for "tuned" and for "paper", because the published calibration is proved only for epsilon < 1.
        Slopes are reported instead of differences, which changes only a factor; differences would be of order 1 / T,
        which is small for floats. The constants depend on the domain. x is a compensated sum.

    Math:
        A user reports the slope of their loss between $x_t + \rho u_t$ and $x_t - \rho u_t$. With $y_t$ the report,

        $$
        x_{t+1} = \Pi( x_t - \eta d y_t u_t ), \quad \rho = \frac{R}{T}, \quad \eta = \frac{D}{d \sqrt{M_2 T}}
        $$

        where $\Pi$ projects onto the ball, or box, of radius $R - \rho$, $M_2$ bounds the second moment of a report,
        $D = R$ on a ball and $D = R \sqrt{d}$ on a box. The expected regret is at most

        $$
        D d \sqrt{M_2 T} + \Big( 3 + \frac{D}{R} \Big) G R
        $$

        where $G$ is the Lipschitz constant. For losses that are strongly convex with the constant $\mu$, round $t$ has
        $\eta = 1 / (\mu t)$, and the first term of the bound is $d^2 M_2 (1 + \ln T) / (2 \mu)$.
    """
    randomizer, rounds = scalar_randomizer(report), check_horizon(horizon, minimum=2)
    is_strong = check_choice("losses", losses, LOSSES) == "strongly_convex"
    is_tuned = check_choice("constants", constants, CONSTANTS) == "tuned"
    body = checked_domain(domain, dim, radius)
    interface = convex_interface(body.points, "difference")

    def params(*, epsilon: float, delta: float = 0.0, lipschitz: float = 1.0, strong_convexity: float = 1.0) -> Params:
        randomizer_inputs = randomizer_values(report, epsilon, delta, "lipschitz", lipschitz)
        reports, moment = randomizer.params(**randomizer_inputs), randomizer.second_moment(**randomizer_inputs)
        offset = body.radius / rounds if is_tuned else min(body.radius, math.log(rounds) / rounds)  # rho
        if is_strong:
            step = body.dim / check_positive("strong_convexity", strong_convexity)
        else:
            step = body.reach / math.sqrt(moment * rounds) if is_tuned else body.dim / math.sqrt(rounds)
        return Params(randomizer=reports, exploration=scalar_leaf("rho", offset), step=scalar_leaf("eta d", step))

    def act(key, params: Params, public: Public, context: None) -> Probe:
        del context
        return Probe(public.x.total, params.exploration * unit_vector(key, body.dim))

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del public, context
        return action, randomizer.report(key, params.randomizer, feedback / (2 * params.exploration))

    def update(key, params: Params, state: State, report) -> State:
        del key
        public: Public = state.public
        probe, reported = report
        slope, direction = randomizer.estimate(params.randomizer, reported), probe.offset / params.exploration
        step = params.step / (public.round + 1).astype(slope.dtype) if is_strong else params.step
        x = body.descend(public.x, -(step * slope) * direction, body.radius - jnp.asarray(params.exploration))
        return State((), Public(public.round + 1, x))

    values = only(params, value_names(report, "lipschitz", *(("strong_convexity",) if is_strong else ())))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, local_claim(report, UNIT)),
        init=lambda key, params: start(body.dim),
        act=act,
        privatize=privatize,
        update=update,
        horizon=rounds,
        interface=interface,
    )

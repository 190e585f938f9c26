"""Gradient descent without a gradient: one loss a round, at a random point near the iterate."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._reports import local_claim, value_names
from jaxdp.bandits.convex._ball import convex_interface
from jaxdp.bandits.convex._ball_kernels import unit_vector  # laid out for CPUs, whatever the size
from jaxdp.bandits.convex._domain import Domain, checked_domain
from jaxdp.bandits.convex._reports import UNIT, channel_values
from jaxdp.core import Learner, Scalar, State, claimed, default_float, factory, only, scalar_leaf
from jaxdp.mechanisms import ScalarParams, scalar_channel
from jaxdp.numerics import compensated
from jaxdp.validation import check_horizon, check_positive


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        channel: of the report, for losses in [-loss_bound, loss_bound].
        exploration: [] float, how far from the iterate the point lies that is played: del.
        step: [] float, what a report of 1 moves the iterate by, times t where steps shrink: eta d / del.
    """

    channel: ScalarParams
    exploration: Scalar
    step: Scalar


class Public(NamedTuple):
    """What follows from the reports.

    Attributes:
        round: [] integer, rounds played.
        x: sum of [dim] floats, the iterate.
    """

    round: jax.Array
    x: compensated.Sum


@factory
def fkm(*, dim: int, horizon: int, radius: float = 1.0, report: str = "rr", domain: str = "ball") -> Learner:
    """Gradient descent by one-point estimates (Flaxman, Kalai & McMahan), for convex losses on a ball or a box.

    Plays x + del u, u a random direction; from the report y of its loss it takes (d / del) y u for a gradient, and
    moves x to x - eta (d / del) y u, or to the nearest point of the ball, or box, of radius R - del. With M2 a bound on
    the second moment of a report, G the Lipschitz constant, T rounds, D = R on a ball and R sqrt(d) on a box, and
    s = 3 + D / R: del = min(R, sqrt(D d sqrt(M2) / (s G)) T^(-1/4)) and eta = D del / (d sqrt(M2 T)). Expected regret:
    at most D d sqrt(M2 T) / del + s G del T, of order T^(3/4) M2^(1/4).

    Args:
        dim: d of points, >= 1.
        horizon: rounds T, >= 1.
        radius: R of the domain, finite and > 0.
        report: how a loss is reported, as for `scalar_channel`: "rr", "laplace" or "gaussian".
        domain: "ball", the points of length at most R; or "box", those whose entries lie in [-R, R].

    Returns:
        A learner whose actions are points of the domain ([dim] float). Feedback is the loss, [] float, NaN counts as
        -loss_bound.

    Raises:
        ValueError: if an argument is out of range; from `params`, if a value is.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        loss_bound: > 0, by default 1: losses are clipped to [-loss_bound, loss_bound].
        lipschitz: G > 0, by default 1.

    Privacy:
        - Claim: epsilon-DP ("rr", "laplace") or (epsilon, delta)-DP ("gaussian") in the local model.
        - Unit: one round's loss function; adjacency: replace one.
        - Why: A loss is clipped and reported once, on the user's device; where it is asked for is known to everyone.
        - Released: all reports.
        - Private: none.

    Source:
        Flaxman, Kalai & McMahan (2005); on reports: LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020), Algorithm 1.

    Deviations:
        Losses are clipped, and reported by randomized response unless another report is chosen; Zheng et al. add
        Gaussian noise, calibrated by the classical formula, to losses as they are. The step is tuned to the second
        moment of the report, and not to the loss's bound, whence the regret's factor is the square root of the report's
        size and not the size. The constants are those of the domain at hand: descent pays for D, the largest distance
        from the centre, and exploration for D / R. x is a compensated sum.
    """
    body = checked_domain(domain, dim, radius)
    channel, rounds = scalar_channel(report), check_horizon(horizon)

    def params(*, epsilon: float, delta: float = 0.0, loss_bound: float = 1.0, lipschitz: float = 1.0) -> Params:
        told = channel_values(report, epsilon, delta, "loss_bound", loss_bound)
        reports, size = channel.params(**told), math.sqrt(channel.second_moment(**told))
        bias = body.bias * check_positive("lipschitz", lipschitz)  # s G
        wide = math.sqrt(body.reach * body.dim * size / bias) * rounds**-0.25
        return Params(
            channel=reports,
            exploration=scalar_leaf("del", min(body.radius, wide)),
            step=scalar_leaf("eta d / del", body.reach / (size * math.sqrt(rounds))),
        )

    values = only(params, value_names(report, "loss_bound", "lipschitz"))
    return _learner(body, rounds, report, values, lambda params, round_: params.step)


@factory
def strongly_convex_one_point(
    *, dim: int, horizon: int, radius: float = 1.0, report: str = "rr", domain: str = "ball"
) -> Learner:
    """As `fkm`, for losses that are strongly convex with a constant mu: the step of round t is eta = 1 / (mu t).

    del = min(R, (d^2 M2 (1 + ln T) / (s mu G T))^(1/3)). Expected regret: at most d^2 M2 (1 + ln T) / (2 mu del^2) +
    s G del T, of order T^(2/3) M2^(1/3).

    Args:
        dim: as for `fkm`.
        horizon: as there.
        radius: as there.
        report: as there.
        domain: as there.

    Returns:
        A learner as `fkm`.

    Raises:
        ValueError: as `fkm`.

    Values:
        epsilon, delta, loss_bound, lipschitz: as for `fkm`.
        strong_convexity: mu > 0, by default 1.

    Privacy:
        - As `fkm`.

    Source:
        Agarwal, Dekel & Xiao (2010), who treat one point in passing; on reports: LDP-Bandits (Zheng, Cai, Huang, Li &
        Wang, 2020), Algorithm 1.

    Deviations:
        As `fkm`.
    """
    body = checked_domain(domain, dim, radius)
    channel, rounds = scalar_channel(report), check_horizon(horizon)

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        loss_bound: float = 1.0,
        lipschitz: float = 1.0,
        strong_convexity: float = 1.0,
    ) -> Params:
        told = channel_values(report, epsilon, delta, "loss_bound", loss_bound)
        reports, moment = channel.params(**told), channel.second_moment(**told)
        curved = check_positive("strong_convexity", strong_convexity)  # mu
        drop = body.bias * curved * check_positive("lipschitz", lipschitz) * rounds  # s mu G T
        wide = math.cbrt(body.dim**2 * moment * (1 + math.log(rounds)) / drop)
        explored = min(body.radius, wide)
        return Params(
            channel=reports,
            exploration=scalar_leaf("del", explored),
            step=scalar_leaf("d / (mu del)", body.dim / (curved * explored)),
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
    """Descent by one-point estimates.

    Args:
        body: where it plays.
        horizon: rounds.
        report: of the loss.
        params: the learner's.
        step: (params, rounds played) -> eta d / del of the next round.
    """
    channel = scalar_channel(report)

    def init(key, params: Params) -> State:
        del key, params
        x = compensated.zero(jnp.zeros(body.dim, default_float()))
        return State((), Public(jnp.zeros((), jnp.result_type(int)), x))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        return public.x.total + params.exploration * unit_vector(key, body.dim)

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del public, context
        return action, channel.report(key, params.channel, feedback)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public: Public = state.public
        point, reported = report
        loss, direction = channel.estimate(params.channel, reported), (point - public.x.total) / params.exploration
        move = -(step(params, public.round) * loss) * direction  # - eta (d / del) y u
        x = body.descend(public.x, move, body.radius - jnp.asarray(params.exploration))
        return State((), Public(public.round + 1, x))

    return Learner(
        params=params,
        guarantee=claimed(params, local_claim(report, UNIT)),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        horizon=horizon,
        interface=convex_interface(body.points, "point"),
    )

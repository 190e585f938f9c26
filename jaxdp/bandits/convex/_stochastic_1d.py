"""Elimination for stochastic convex losses on an interval: outer quarters with larger losses are cut off."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits._reports import check_report, feedback_privatizer, local_claim, value_names
from jaxdp.bandits.convex._ball import checked_ball, convex_interface
from jaxdp.bandits.convex._reports import UNIT, randomizer_values
from jaxdp.core import Learner, Scalar, State, ball, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams, scalar_randomizer
from jaxdp.numerics import compensated
from jaxdp.validation import check_horizon

REPORTS = ("rr", "gaussian")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces. Section Math of `stochastic_1d` defines the symbols.

    Attributes:
        randomizer: parameters of the randomizer, for losses in [-loss_bound, loss_bound].
        loss_bound: [] float > 0.
        samples: [levels] integer, n_1, n_2, ...: the number of plays of each of the three points from the start of an
            epoch to the end of each level; at most the horizon.
    """

    randomizer: ScalarParams
    loss_bound: Scalar
    samples: np.ndarray


class Public(NamedTuple):
    """Public state, computed from the reports.

    Attributes:
        low: [] float, lower end of the interval.
        width: [] float, width of the interval.
        level: [] int32, i - 1, where i is the current level.
        plays: [] integer, rounds played in the current epoch.
        sums: [3] compensated sums of the current epoch's reports at the three points.
    """

    low: jax.Array
    width: jax.Array
    level: jax.Array
    plays: jax.Array
    sums: compensated.Sum


@factory
def stochastic_1d(*, horizon: int, radius: float = 1.0, report: str = "rr") -> Learner:
    r"""Cuts off outer quarters of an interval, for random convex losses with a fixed mean (Agarwal et al.).

    In each epoch, the points at 1/4, 1/2 and 3/4 of the interval are played in turn. Level i = 1, 2, ... of the epoch
    ends when each point has been played n_i times. This number is so large that the mean of the point's reports is
    accurate to gamma_i = B 2^-i, where B bounds the losses (see Math). Let the worse end point be the left or the right
    point, whichever has the larger mean report. If its mean minus gamma_i exceeds the mean of another point by at least
    2 gamma_i, the quarter of the interval beyond the worse end point is cut off, and the next epoch starts at level 1.
    Otherwise the next level starts.

    In d > 1 dimensions the algorithm of Agarwal et al. has regret of order d^16 sqrt(T), and is not implemented here;
    use `fkm` or the barrier methods.

    Args:
        horizon: rounds T, >= 2.
        radius: R, which defines the interval [-R, R]; finite and > 0.
        report: "rr" or "gaussian". Laplace noise is rejected, because its variance proxy is infinite.

    Returns:
        A learner that plays points of the interval ([1] float). Feedback is the loss, [] float; NaN counts as
        -loss_bound.

    Raises:
        ValueError: if an argument is out of range. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        loss_bound: B > 0, by default 1: losses are clipped to [-B, B].

    Privacy:
        - As `fkm`.

    Source:
        Agarwal, Foster, Hsu, Kakade & Rakhlin (2011), Algorithm 1; on reports: LDP-Bandits (Zheng, Cai, Huang, Li &
        Wang, 2020), Algorithm 1.

    Deviations:
        gamma is proportional to B, which is 1 in the paper of Agarwal et al. By default losses are reported by
        randomized response; Zheng et al. add Gaussian noise. They do not clip losses, but without clipping, reports of
        unbounded losses are not private. Sums are compensated.

    Math:
        Level $i$ ends when each of the three points has been played $n_i$ times in the epoch. With $s^2$ the variance
        proxy of a report,

        $$
        n_i = \lceil \frac{2 s^2 \ln T}{\gamma_i^2} \rceil, \quad \gamma_i = B 2^{-i}
        $$

        Let $m_l, m_c, m_r$ be the means of the reports at the left, the middle and the right point. A quarter is cut
        off if

        $$
        \max(m_l, m_r) - \gamma_i \ge \min( \min(m_l, m_r), m_c ) + 2 \gamma_i
        $$

        With probability about $1 - 1 / T$ the best point is never cut off, and the regret is of order

        $$
        s \sqrt{T \ln T} \ln(T / s)
        $$
    """
    check_report(report, REPORTS)
    randomizer, rounds = scalar_randomizer(report), check_horizon(horizon, minimum=2)
    _, radius = checked_ball(1, radius)
    interface = convex_interface(ball(1, radius), "point")
    levels = math.ceil(math.log(rounds) / math.log(4)) + 1  # s^2 >= B^2, so that n_i >= 2 ln(2) 4^i

    def params(*, epsilon: float, delta: float = 0.0, loss_bound: float = 1.0) -> Params:
        randomizer_inputs = randomizer_values(report, epsilon, delta, "loss_bound", loss_bound)
        unit = randomizer.variance_proxy(**randomizer_inputs) / loss_bound**2
        samples = [math.ceil(min(2 * unit * math.log(rounds) * 4.0**i, float(rounds))) for i in range(1, levels + 1)]
        return Params(
            randomizer=randomizer.params(**randomizer_inputs),
            loss_bound=scalar_leaf("loss_bound", loss_bound),
            samples=np.asarray(samples, jax.dtypes.canonicalize_dtype(int)),
        )

    def init(key, params: Params) -> State:
        del key, params
        float_, plays = default_float(), jnp.zeros((), jnp.result_type(int))
        ends = jnp.asarray(-radius, float_), jnp.asarray(2 * radius, float_)
        return State((), Public(*ends, jnp.int32(0), plays, compensated.zero(jnp.zeros(3, float_))))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        quarters = (public.plays % 3 + 1).astype(public.width.dtype)
        return (public.low + quarters / 4 * public.width)[None]

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (_, reported) = state.public, report
        is_played = jnp.arange(3, dtype=public.plays.dtype) == public.plays % 3
        added = compensated.add(public.sums, randomizer.estimate(params.randomizer, reported))
        sums = jax.tree.map(lambda new, old: jnp.where(is_played, new, old), added, public.sums)
        plays = public.plays + 1
        plays_of_level = jnp.asarray(params.samples)[public.level]  # n_i
        is_over = plays // 3 >= plays_of_level  # the level ends when each point has been played n_i times

        gamma = params.loss_bound * jnp.exp2(-(public.level + 1).astype(sums.total.dtype))
        left, middle, right = sums.total / plays_of_level.astype(sums.total.dtype)
        worse, better = jnp.maximum(left, right), jnp.minimum(left, right)
        # Compares one point's lower bound with another point's upper bound plus gamma (cases 1 and 2 of Agarwal et
        # al.).
        is_worse = (worse - gamma >= better + gamma + gamma) | (worse - gamma >= middle + gamma + gamma)
        is_cut = is_over & is_worse
        low = jnp.where(is_cut & (left >= right), public.low + public.width / 4, public.low)
        last = params.samples.shape[0] - 1
        return State(
            (),
            Public(
                low,
                jnp.where(is_cut, 0.75 * public.width, public.width),
                jnp.where(is_cut, 0, jnp.minimum(public.level + is_over.astype(jnp.int32), last)),
                jnp.where(is_cut, 0, plays),
                jax.tree.map(lambda s: jnp.where(is_cut, 0, s), sums),
            ),
        )

    values = only(params, value_names(report, "loss_bound"))
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

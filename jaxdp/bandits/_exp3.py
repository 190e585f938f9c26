"""Exp3 (exponential weights for exploration and exploitation) on rewards that each user randomizes."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._reports import feedback_privatizer, reward_clip, reward_reports
from jaxdp.bandits._unit_losses import UnitLosses, unit_loss, unit_losses
from jaxdp.core import Interface, Learner, Scalar, State, arms, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams
from jaxdp.numerics import compensated
from jaxdp.random import index_from_uniform, uniform_from_key
from jaxdp.validation import check_count, check_horizon, check_positive

REPORTS = ("rr", "laplace", "gaussian")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        report: parameters of the local randomizer.
        losses: the map from reports to losses in [0, 1].
        learning_rate: [] float > 0.
    """

    report: ScalarParams
    losses: UnitLosses
    learning_rate: Scalar


class Public(NamedTuple):
    """Public state, computed from the reports.

    Attributes:
        losses: [num_arms] compensated sums of estimated losses.
        weights: [num_arms] float, the probability of each arm in the next round.
    """

    losses: compensated.Sum
    weights: jax.Array


@factory
def exp3(*, num_arms: int, horizon: int, report: str = "rr", rewards: str = "binary") -> Learner:
    r"""Plays arm i with probability w_i proportional to exp(-learning_rate L_i) (Exp3).

    L_i is the sum of the estimated losses of arm i so far. An affine function maps each report to a loss y, which is
    clipped to [0, 1]. If arm I was played, the estimated loss of arm i is y 1[i = I] / w_i.

    Args:
        num_arms: number of arms K, >= 2.
        horizon: rounds T, >= 1.
        report: "rr" (randomized response; losses are bits if epsilon is finite), or the reward with additive noise:
            "laplace" or "gaussian". With noise and rewards in [0, 1], the loss is (1 - report + m) / (1 + 2 m), clipped
            to [0, 1]. Here m is ln(T / failure_prob) / epsilon for Laplace noise, of scale 1 / epsilon, and s sqrt(2
            ln(2 T / failure_prob)) for Gaussian noise of standard deviation s. With probability >= 1 - failure_prob, no
            noise in the T rounds exceeds m in absolute value.
        rewards: "binary" ([] int32, clipped to {0, 1}) or "bounded" ([] float, clipped; NaN counts as `reward_low`).

    Returns:
        A learner that plays arms ([] int32).

    Raises:
        ValueError: if num_arms < 2, horizon < 1, or report or rewards is not one of the names above. The result's
            `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        failure_prob: with Gaussian or Laplace reports, in (0, 1), by default 0.05.
        reward_low, reward_high: the interval to which bounded rewards are clipped: finite, reward_low < reward_high; by
            default 0 and 1.
        learning_rate: > 0 and finite, by default sqrt(2 ln K / (K T)).

    Privacy:
        - Claim: epsilon-DP (randomized response, Laplace) or (epsilon, delta)-DP (Gaussian) in the local model.
        - Unit: one round's reward; adjacency: replace one, by anything.
        - Why: A reward leaves the user's device once, clipped and randomized; everything else is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Auer, Cesa-Bianchi, Freund & Schapire (2002), in the version for losses by Bubeck & Cesa-Bianchi (2012), Theorem
        3.1. At epsilon = inf the learner is this version. Tossou & Dimitrakakis (2017) scale Laplace reports to [0, 1].

    Deviations:
        Tossou & Dimitrakakis privatize in the central model; here each user adds the noise, after clipping the reward.
        The algorithm of 2002 also plays a uniformly random arm with some probability. The version for losses and this
        learner do not. Estimated losses are compensated sums.

    Math:
        Round $t$ plays arm $i$ with probability

        $$
        w_{t,i} = \frac{\exp(-\eta \hat L_{t,i})}{\sum_j \exp(-\eta \hat L_{t,j})}, \quad
        \hat L_{t+1,i} = \hat L_{t,i} + \frac{y_t \mathbf{1}[i = I_t]}{w_{t,i}}
        $$

        where $I_t$ is the arm that was played and $y_t$ its reported loss in $[0, 1]$. The default rate is

        $$
        \eta = \sqrt{\frac{2 \ln K}{K T}}
        $$

        With $c = (e^{\varepsilon} + 1) / (e^{\varepsilon} - 1)$ for randomized response, the pseudo-regret on
        rewards in $[0, 1]$ is, with the default rate, at most

        $$
        c \sqrt{2 T K \ln K}
        $$

        For noise $c = 1 + 2 m$, as long as no noise exceeds $m$.

    Examples:
        >>> import jax, jaxdp
        >>> learner = exp3(num_arms=2, horizon=1000, report="laplace")
        >>> run = jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), horizon=1000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=10.0))
        >>> bool(outputs["pseudo_regret"][-1] < 300)  # uniformly random arms: 400
        True
    """
    num_arms, horizon = check_count("num_arms", num_arms, 2), check_horizon(horizon)
    randomizer, space, names, randomizer_params, claim = reward_reports(report, rewards, REPORTS)

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        failure_prob: float = 0.05,
        reward_low: float = 0.0,
        reward_high: float = 1.0,
        learning_rate: float | None = None,
    ) -> Params:
        if learning_rate is None:
            learning_rate = math.sqrt(2 * math.log(num_arms) / horizon / num_arms)
        check_positive("learning_rate", learning_rate)
        leaves = randomizer_params(epsilon=epsilon, delta=delta, reward_low=reward_low, reward_high=reward_high)
        return Params(
            report=leaves,
            losses=unit_losses(leaves, report, horizon, failure_prob),
            learning_rate=scalar_leaf("learning_rate", learning_rate),
        )

    def init(key, params: Params) -> State:
        del key, params
        zeros = jnp.zeros(num_arms, default_float())
        return State((), Public(compensated.zero(zeros), zeros + 1 / num_arms))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del params, context
        return index_from_uniform(uniform_from_key(key), public.weights)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (arm, reported) = state.public, report
        is_played = jnp.arange(num_arms, dtype=arm.dtype) == arm
        losses = compensated.add(
            public.losses, jnp.where(is_played, unit_loss(params.losses, reported) / public.weights, 0)
        )
        loss_gaps = (losses.total - losses.total.min()) - losses.excess  # subtracts large numbers first, for accuracy
        odds = jnp.exp(-params.learning_rate * jnp.maximum(loss_gaps, 0))  # rounding errors may exceed a gap
        return State((), Public(losses, odds / odds.sum()))

    def best_action(params: Params, public: Public) -> jax.Array:
        del params
        return jnp.argmin(public.losses.total - public.losses.excess).astype(jnp.int32)

    values = only(params, (*names, *(() if report == "rr" else ("failure_prob",)), "learning_rate"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=feedback_privatizer(randomizer.report),
        update=update,
        horizon=horizon,
        interface=Interface(arms(num_arms), space),
        clip=reward_clip(rewards),
        best_action=best_action,
    )

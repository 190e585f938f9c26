"""Tsallis-INF (follow the regularised leader with Tsallis entropy) on rewards that each user randomizes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._lane_kernels import sum_kernels
from jaxdp.bandits._reports import feedback_privatizer, reward_clip, reward_reports
from jaxdp.bandits._unit_losses import UnitLosses, unit_loss, unit_losses
from jaxdp.core import Interface, Learner, State, arms, default_float, factory, guarantee_for, only
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams
from jaxdp.numerics import compensated
from jaxdp.numerics.tsallis import tsallis_weights
from jaxdp.random import index_from_uniform, uniform_from_key
from jaxdp.validation import check_choice, check_count, check_horizon

REPORTS = ("rr", "gaussian")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        report: parameters of the randomizer.
        losses: the map from reports to losses in [0, 1].
    """

    report: ScalarParams
    losses: UnitLosses


class Public(NamedTuple):
    """Public state, computed from the reports.

    Attributes:
        round: [] integer, rounds played.
        losses: [num_arms] compensated sums of estimated losses.
        weights: [num_arms] float, the probability of each arm in the next round.
    """

    round: jax.Array
    losses: compensated.Sum
    weights: jax.Array


def importance_weighted(
    losses: compensated.Sum, weights: jax.Array, arm: jax.Array, loss: jax.Array, threshold: jax.Array
) -> compensated.Sum:
    """Adds the importance-weighted estimate y 1[i = I] / w_i to the sum of each arm i, for a loss y in [0, 1] of arm I.

    The threshold is ignored. It is an argument so that the signature is the same as in `reduced_variance`.
    """
    del threshold
    is_played = jnp.arange(len(weights), dtype=arm.dtype) == arm
    return compensated.add(losses, jnp.where(is_played, loss / weights, 0))


def reduced_variance(
    losses: compensated.Sum, weights: jax.Array, arm: jax.Array, loss: jax.Array, threshold: jax.Array
) -> compensated.Sum:
    """Adds 1[i = I] (y - b_i) / w_i + b_i to the sum of each arm i, with b_i = 1/2 if w_i >= threshold, else 0."""
    is_played = jnp.arange(len(weights), dtype=arm.dtype) == arm
    base = jnp.where(weights >= threshold, 0.5, 0).astype(weights.dtype)
    return compensated.add(losses, base + jnp.where(is_played, (loss - base) / weights, 0))


ADDED = {"iw": importance_weighted, "rv": reduced_variance}


@factory
def tsallis_inf(
    *, num_arms: int, estimator: str = "iw", report: str = "rr", rewards: str = "binary", horizon: int | None = None
) -> Learner:
    r"""Plays Tsallis-INF, which has small regret for both stochastic and adversarial rewards (best of both worlds).

    The probability w_i of arm i is a function of the round and of the sums of estimated losses so far (see Math). A
    decreasing affine function maps each report to a loss y, clipped to [0, 1].

    Args:
        num_arms: number of arms, >= 2.
        estimator: the estimator of the losses in a round, after arm I was played: "iw", the importance-weighted
            estimator y 1[i = I] / w_i; or "rv", the reduced-variance estimator (see Math).
        report: "rr" (randomized response; losses are bits if epsilon is finite) or "gaussian" (the reward with
            analytically calibrated noise of standard deviation s). With Gaussian noise and rewards in [0, 1], the loss
            is (1 - report + m) / (1 + 2 m), clipped to [0, 1], with m = s sqrt(2 ln(2 T / failure_prob)).
        rewards: "binary" ([] int32, clipped to {0, 1}) or "bounded" ([] float, clipped; NaN counts as `reward_low`).
        horizon: rounds T, >= 1. Required for Gaussian reports; must be None for randomized response.

    Returns:
        A learner that plays arms ([] int32).

    Raises:
        ValueError: if num_arms < 2, estimator, report or rewards is not one of the names above, or horizon is < 1 or
            exceeds the largest integer; if horizon is missing for Gaussian reports, or given for randomized response.
            The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        failure_prob: with Gaussian reports, in (0, 1), by default 0.05.
        reward_low, reward_high: the interval to which bounded rewards are clipped: finite, reward_low < reward_high; by
            default 0 and 1.

    Privacy:
        - Claim: epsilon-DP (randomized response) or (epsilon, delta)-DP (Gaussian) in the local model.
        - Unit: one round's reward; adjacency: replace one, by anything.
        - Why: A reward leaves the user's device once, clipped and randomized; everything else is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Zimmert & Seldin (2021), Algorithms 1 and 2; at epsilon = inf the learner is the same. Applied to reports as in
        LDP-Bandits (Zheng, Cai, Huang, Li & Wang, 2020), Appendix B.1.

    Deviations:
        The default is randomized response. Zheng et al. have only Gaussian reports, and use the sensitivity 2, although
        the sensitivity of rewards in [0, 1] is 1. Reports are shifted, because negative losses break the algorithm's
        stability. Estimated losses are compensated sums, and weights in float32 are accurate to about 1e-6. In float32
        an arm's probability is rounded to a multiple of 2^-23, so an arm with a weight close to 2^-23 is played too
        seldom or too often.

    Math:
        Round $t$ plays arm $i$ with probability

        $$
        w_{t,i} = \frac{4}{\eta_t^2 \, (\hat L_{t,i} - x_t)^2}
        $$

        where $x_t < \min_i \hat L_{t,i}$ is the number with $\sum_i w_{t,i} = 1$. The estimated losses $\hat L_t$ grow
        by

        $$
        \hat\ell_{t,i} = \frac{y_t \mathbf{1}[i = I_t]}{w_{t,i}}, \quad \eta_t = \frac{2}{\sqrt{t}}
        $$

        for "iw", and for "rv", with $b_i = 1/2$ if $w_{t,i} \ge \eta_t^2$ and $b_i = 0$ otherwise, by

        $$
        \hat\ell_{t,i} = \frac{(y_t - b_i) \mathbf{1}[i = I_t]}{w_{t,i}} + b_i, \quad \eta_t = \frac{4}{\sqrt{t}}
        $$

        where $I_t$ is the arm that was played, and $y_t$ its reported loss in $[0, 1]$.

        With $c = (e^{\varepsilon} + 1) / (e^{\varepsilon} - 1)$ for randomized response, the regret on rewards in
        $[0, 1]$ is $c$ times the regret on bits. Against an adversary, the regret of "iw" is at most

        $$
        c \big( 4 \sqrt{K T} + 1 \big)
        $$

        and the regret of "rv" at most $c (2 \sqrt{K T} + 10 K \ln T + 16)$. For stochastic rewards it is of order
        $c^2 \ln T$ times the sum of $1 / \Delta_i$ over worse arms, with $\Delta_i$ the gap of arm $i$. For Gaussian
        reports $c = 1 + 2 m$ if no loss is clipped, which has probability at least 1 - `failure_prob`.

    Examples:
        >>> import jax, jaxdp
        >>> run = jaxdp.simulator(tsallis_inf(num_arms=2), jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), horizon=1000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["pseudo_regret"][-1] < 150)  # uniformly random arms: 400
        True
    """
    num_arms = check_count("num_arms", num_arms, 2)
    added = sum_kernels(ADDED[check_choice("estimator", estimator, tuple(ADDED))])  # these kernels serve any num_arms
    randomizer, space, names, randomizer_params, claim = reward_reports(report, rewards, REPORTS)
    is_gaussian = report == "gaussian"
    if is_gaussian != (horizon is not None):
        raise ValueError(f"horizon must be given for report='gaussian', and only then, got {horizon} for {report!r}")
    rounds = 1 if horizon is None else check_horizon(horizon)
    rate_factor = 2.0 if estimator == "iw" else 4.0

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        failure_prob: float = 0.05,
        reward_low: float = 0.0,
        reward_high: float = 1.0,
    ) -> Params:
        leaves = randomizer_params(epsilon=epsilon, delta=delta, reward_low=reward_low, reward_high=reward_high)
        return Params(report=leaves, losses=unit_losses(leaves, report, rounds, failure_prob))

    def init(key, params: Params) -> State:
        del key, params
        zeros = jnp.zeros(num_arms, default_float())
        return State((), Public(jnp.zeros((), jnp.result_type(int)), compensated.zero(zeros), zeros + 1 / num_arms))

    def rate(round_: jax.Array, dtype) -> jax.Array:  # rounds are numbered from 0 here, and from 1 in the docstring
        return rate_factor / jnp.sqrt((round_ + 1).astype(dtype))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del params, context
        return index_from_uniform(uniform_from_key(key), public.weights)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (arm, reported) = state.public, report
        float_ = public.weights.dtype
        threshold = rate(public.round, float_) ** 2
        losses = added(public.losses, public.weights, arm, unit_loss(params.losses, reported), threshold)
        weights = tsallis_weights(losses.total, rate(public.round + 1, float_), losses.excess)
        return State((), Public(public.round + 1, losses, weights))

    def best_action(params: Params, public: Public) -> jax.Array:
        del params
        return jnp.argmin(public.losses.total - public.losses.excess).astype(jnp.int32)

    values = only(params, (*names, "failure_prob") if is_gaussian else names)
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

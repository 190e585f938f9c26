"""Best-arm identification by successive elimination, on reports that users randomize."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits import _successive_elimination_bulk as bulk
from jaxdp.bandits._best_arm import Sums, lowest, mean, num_active, rank, reports_of, total
from jaxdp.bandits._reports import feedback_privatizer
from jaxdp.core import (
    Learner,
    Scalar,
    State,
    default_float,
    factory,
    guarantee_for,
    only,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.random import ties
from jaxdp.random.key_bits import own_word
from jaxdp.validation import check_count, check_positive, check_probability


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        randomizer: parameters of the randomizer of the reports.
        squared_width: [] float > 0, 8 times the variance proxy of a report, times confidence_multiplier^2.
        log_risk: [] float, ln(pi^2 K / (3 failure_prob)).
    """

    randomizer: Any
    squared_width: Scalar
    log_risk: Scalar


class Public(NamedTuple):
    """Public state: sums of reports, the arms that remain, and a random order for ties.

    Attributes:
        active: [num_arms] bool, the arms that remain.
        sweeps: [] integer, number of completed sweeps. Each sweep plays every active arm once.
        turn: [] int32, number of active arms that have been played in the current sweep.
        sums: [num_arms] sums of each arm's reports.
        tie_word: [] uint32, a random word that determines how the recommendation breaks ties between arms.
    """

    active: jax.Array
    sweeps: jax.Array
    turn: jax.Array
    sums: Sums
    tie_word: jax.Array


@factory
def successive_elimination(*, num_arms: int, report: str = "rr", rewards: str = "binary") -> Learner:
    r"""Plays the remaining arms in turn, and drops arms with means far below the largest mean, until one arm remains.

    After the r-th sweep over the active arms, an arm is dropped if its mean report is more than 2 b_r below the largest
    mean report, where b_r is a confidence radius (see Math). At any time, the recommendation is the active arm with the
    largest mean report, where an arm without reports has the smallest possible mean reward (0 for binary rewards, else
    `reward_low`). Among equal means, each arm is equally likely.

    Args:
        num_arms: number of arms K, >= 2.
        report: "rr" (randomized response) or "gaussian". Laplace noise is rejected, because its variance proxy is
            infinite.
        rewards: "binary" ([] int32, clipped to {0, 1}) or "bounded" ([] float, clipped to [reward_low, reward_high];
            NaN counts as `reward_low`).

    Returns:
        A learner that plays and recommends arms ([] int32). It supports blocks; for randomized responses of binary
        rewards it also supports counts. It may stop before the horizon. If there is a unique best arm, the
        recommendation after stopping is wrong with probability <= failure_prob.

    Raises:
        ValueError: if num_arms < 2, or report or rewards is not one of the names above. The result's `params` raises
            this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1; multiplies b_r. With a value below 1, arms are dropped sooner. Privacy
            is the same, but the guarantee on the recommendation is lost.
        reward_low, reward_high: the interval to which bounded rewards are clipped: finite, reward_low < reward_high; by
            default 0 and 1.

    Privacy:
        - Claim: epsilon-DP (randomized response) or (epsilon, delta)-DP (Gaussian) in the local model.
        - Unit: one round's reward; adjacency: replace one, by anything.
        - Why: A reward leaves the user's device once. Everything else, including the stopping time, is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Even-Dar, Mannor & Mansour (2006), Algorithm 3. Applied to reports as in LDP-Bandits (Zheng, Cai, Huang, Li &
        Wang, 2020), Appendix B.2. By a union bound, the error of some mean exceeds b_r for some r with probability at
        most failure_prob, which is the sum of 2 exp(-r b_r^2 / (2 s^2)) over arms and r.

    Deviations:
        The randomized bit of a binary reward is used in place of the reward, with s^2 = 1/4. The distances of the means
        from 1/2 are smaller by the factor (e^epsilon + 1) / (e^epsilon - 1), and the number of sweeps is larger by the
        square of this factor. The code compares sums of reports instead of means. Zheng et al. do not clip rewards.

    Math:
        After sweep $r$ over the active arms $A$, arm $i$ is dropped if

        $$
        \hat\mu_i < \max_{j \in A} \hat\mu_j - 2 b_r, \quad
        b_r = \sqrt{\frac{2 s^2}{r} \ln \frac{\pi^2 K r^2}{3 \beta}}
        $$

        where $\hat\mu_i$ is the mean report of arm $i$, $s^2$ the variance proxy of a report, and $\beta$ is
        `failure_prob`.

    Examples:
        >>> import jax, jaxdp
        >>> bandit = jaxdp.bandits.bernoulli_bandit([0.1, 0.9, 0.5])
        >>> run = jaxdp.simulator(successive_elimination(num_arms=3), bandit, horizon=100_000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> outputs["correct"].tolist(), outputs["censored"].tolist()
        ([True], False)
    """
    num_arms = check_count("num_arms", num_arms, 2)
    reports = reports_of(report, rewards, num_arms)
    arm_indices = jnp.arange(num_arms, dtype=jnp.int32)

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        failure_prob: float = 0.05,
        confidence_multiplier: float = 1.0,
        reward_low: float = 0.0,
        reward_high: float = 1.0,
    ) -> Params:
        check_probability("failure_prob", failure_prob)
        check_positive("confidence_multiplier", confidence_multiplier)
        report_values = reports.pick_values(
            {"epsilon": epsilon, "delta": delta, "reward_low": reward_low, "reward_high": reward_high}
        )
        squared = 8 * reports.variance_proxy(**report_values) * confidence_multiplier * confidence_multiplier
        width_name = (
            "the squared width of confidence bounds (from epsilon, the range of rewards and confidence_multiplier)"
        )
        check_positive(width_name, squared)
        return Params(
            randomizer=reports.params(**report_values),
            squared_width=scalar_leaf(width_name, squared),
            log_risk=scalar_leaf(
                "ln(pi^2 K / (3 failure_prob))", math.log(math.pi**2 * num_arms / 3) - math.log(failure_prob)
            ),
        )

    def init(key, params: Params) -> State:
        del params
        sweeps, sums = jnp.zeros((), jnp.result_type(int)), reports.zero_sums(num_arms)
        return State((), Public(jnp.ones(num_arms, bool), sweeps, jnp.int32(0), sums, own_word(key)))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return jnp.argmax(public.active & (rank(public) == public.turn)).astype(jnp.int32)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (action, reported) = state.public, report
        sums = reports.add(public.sums, arm_indices == action, reported)
        is_over = public.turn + 1 == num_active(public)
        sweeps = public.sweeps + is_over.astype(public.sweeps.dtype)
        active = public.active & ~(is_over & far_below(params, public.active, sweeps, sums))
        turn = jnp.where(is_over, 0, public.turn + 1)
        return State((), public._replace(active=active, sweeps=sweeps, turn=turn, sums=sums))

    # Blocks call `far_below`, and through it `leads` and `radius`, with arrays with a last axis of lanes. So these
    # functions use axis=0, keepdims and [None].
    def far_below(params: Params, active: jax.Array, sweeps: jax.Array, sums: Sums) -> jax.Array:
        """Returns a mask ([num_arms] bool) of the active arms to drop after `sweeps` sweeps."""
        return active & (leads(active, sums).astype(default_float()) > radius(params, sweeps)[None])

    def leads(active: jax.Array, sums: Sums) -> jax.Array:
        """Returns, for each arm, the maximum sum over active arms minus the arm's own sum, [num_arms]."""
        totals = total(sums)
        return jnp.max(jnp.where(active, totals, lowest(totals.dtype)), axis=0, keepdims=True) - totals

    def radius(params: Params, sweeps: jax.Array) -> jax.Array:
        """Returns 2 r b_r after r >= 1 sweeps, [] float; an arm is dropped if its entry of `leads` exceeds this."""
        played = jnp.maximum(sweeps, 1).astype(default_float())
        return jnp.sqrt(params.squared_width * (played * (params.log_risk + 2 * jnp.log(played))))

    def done(params: Params, public: Public) -> jax.Array:
        del params
        return num_active(public) == 1

    def recommend(params: Params, public: Public) -> jax.Array:
        ahead = rank(public) < public.turn  # these arms have one more report
        plays = public.sweeps + ahead.astype(public.sweeps.dtype)
        worst = 0 if reports.clip is None else reports.clip(params)[0]
        means = jnp.where(plays > 0, mean(public.sums, plays), worst)
        means = jnp.where(public.active, means, -jnp.inf)
        return ties.largest(means, ties.ranks(public.tie_word, num_arms))

    algorithm = bulk.Algorithm(num_arms, reports, leads, radius, far_below)
    values = only(params, (*reports.names, "failure_prob", "confidence_multiplier"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, reports.claim),
        init=init,
        act=act,
        privatize=feedback_privatizer(reports.report, "randomizer"),
        update=update,
        done=done,
        recommend=recommend,
        blocks=(bulk.blocks(algorithm),),
        counts=None if reports.total is None else bulk.counts(algorithm),
        interface=reports.interface,
        clip=reports.clip,
        min_horizon=num_arms + 1,
    )

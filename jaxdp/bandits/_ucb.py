"""UCB1 on rewards that each user randomizes."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._lane_kernels import array_kernel
from jaxdp.bandits._means import Means, mean_reports, no_means
from jaxdp.bandits._means_kernels import largest_bound, update_means  # laid out for CPU; they serve any num_arms
from jaxdp.bandits._reports import feedback_privatizer, randomizer_values, reward_clip, reward_reports
from jaxdp.core import Interface, Learner, Scalar, State, arms, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams
from jaxdp.numerics import compensated
from jaxdp.random import ties
from jaxdp.random.key_bits import own_word
from jaxdp.validation import check_count, check_positive

REPORTS = ("rr", "gaussian")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        report: parameters of the randomizer.
        squared_radius: [] float > 0, the squared confidence radius after one play of an arm, divided by ln t, where t
            is the number of rounds so far.
    """

    report: ScalarParams
    squared_radius: Scalar


class Public(NamedTuple):
    """Public state: statistics of the reports, as in `Means`, and a random order for ties.

    Attributes:
        round: [] integer, rounds played.
        plays: [num_arms] integer, plays of each arm.
        sums: [num_arms] compensated sums of reports.
        tie_word: [] uint32, a random word that determines how ties between arms are broken.
    """

    round: jax.Array
    plays: jax.Array
    sums: compensated.Sum
    tie_word: jax.Array


def upper_bounds(sums: compensated.Sum, plays: jax.Array, spread: jax.Array) -> jax.Array:
    """Returns upper confidence bounds, [num_arms]; infinity for an arm that has not been played.

    `spread` is 2 exploration_rate v ln t, where t is the number of rounds so far, and v the variance proxy of a report.
    """
    # With scale = n^(-1/2), the mean is sum * scale^2 and the radius is sqrt(spread) * scale. This needs only one slow
    # operation.
    scale = jax.lax.rsqrt(jnp.maximum(plays, 1).astype(spread.dtype))
    return jnp.where(plays > 0, ((sums.total - sums.excess) * scale + jnp.sqrt(spread)) * scale, jnp.inf)


@factory
def ucb(*, num_arms: int, report: str = "rr", rewards: str = "binary") -> Learner:
    r"""Plays the arm with the largest upper confidence bound, mean report + sqrt(2 exploration_rate v ln t / n).

    Here n is the number of plays of the arm, t the number of rounds so far, and v the variance proxy of a report,
    including its noise. For rewards in [0, 1], v = c^2 / 4 with c = (e^epsilon + 1) / (e^epsilon - 1) for randomized
    response, and v = 1/4 + s^2 for Gaussian noise of standard deviation s. Arms that have not been played are played
    first, in order. Ties are broken by a random order of the arms, which each run draws once.

    Args:
        num_arms: number of arms, >= 2.
        report: "rr" (randomized response) or "gaussian". Laplace noise is rejected, because its variance proxy is
            infinite.
        rewards: "binary" ([] int32, clipped to {0, 1}) or "bounded" ([] float, clipped; NaN counts as `reward_low`).

    Returns:
        A learner that plays arms ([] int32).

    Raises:
        ValueError: if num_arms < 2, or report or rewards is not one of the names above. The result's `params` raises
            this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        reward_low, reward_high: the interval to which bounded rewards are clipped: finite, reward_low < reward_high; by
            default 0 and 1.
        exploration_rate: > 0 and finite, by default 4, as in UCB1.

    Privacy:
        - Claim: epsilon-DP (randomized response) or (epsilon, delta)-DP (Gaussian) in the local model.
        - Unit: one round's reward; adjacency: replace one, by anything.
        - Why: A reward leaves the user's device once, clipped and randomized; everything else is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Auer, Cesa-Bianchi & Fischer (2002), UCB1; at epsilon = inf with binary rewards the learner is this algorithm.
        For reports with another variance proxy: Bubeck & Cesa-Bianchi (2012), Theorem 2.1.

    Deviations:
        Sums of reports are compensated.

    Math:
        After $t$ rounds the learner plays

        $$
        a_t = \operatorname{argmax}_i \; \hat\mu_i + \sqrt{\frac{2 \alpha v \ln t}{n_i}}
        $$

        where $\hat\mu_i$ is the mean of the $n_i$ reports of arm $i$ and $\alpha$ is `exploration_rate`. For randomized
        responses of rewards in $[0, 1]$ the variance proxy is $v = c^2 / 4$ with

        $$
        c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$

        For $\alpha > 2$ the regret after $T$ rounds is at most

        $$
        \sum_{i : \Delta_i > 0} \Big( \frac{8 \alpha v \ln T}{\Delta_i} + \frac{\alpha}{\alpha - 2} \Big)
        $$

    Examples:
        >>> import jax, jaxdp
        >>> learner = ucb(num_arms=2)
        >>> run = jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), horizon=1000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["pseudo_regret"][-1] < 200)  # uniformly random arms: 400
        True
    """
    num_arms = check_count("num_arms", num_arms, 2)
    randomizer, space, names, randomizer_params, claim = reward_reports(report, rewards, REPORTS)

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        reward_low: float = 0.0,
        reward_high: float = 1.0,
        exploration_rate: float = 4.0,
    ) -> Params:
        values = {"epsilon": epsilon, "delta": delta, "reward_low": reward_low, "reward_high": reward_high}
        check_positive("exploration_rate", exploration_rate)
        leaves = randomizer_params(**values)
        proxy = randomizer.variance_proxy(**randomizer_values({name: values[name] for name in names}))
        return Params(report=leaves, squared_radius=scalar_leaf("the squared radius", 2 * exploration_rate * proxy))

    bounds = array_kernel(upper_bounds)  # a separate kernel on a CPU, for any num_arms

    def init(key, params: Params) -> State:
        del params
        return State((), Public(*no_means(num_arms), own_word(key)))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, context
        spread = params.squared_radius * jnp.log(jnp.maximum(public.round, 1).astype(default_float()))
        return largest_bound(bounds(public.sums, public.plays, spread), public.tie_word)

    def update(key, params: Params, state: State, report) -> State:
        del key, params
        *means, tie_word = state.public
        return State((), Public(*update_means(Means(*means), *report), tie_word))

    def best_action(params: Params, public: Public) -> jax.Array:
        del params
        return ties.largest(mean_reports(public.sums, public.plays), ties.ranks(public.tie_word, num_arms))

    values = only(params, (*names, "exploration_rate"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=feedback_privatizer(randomizer.report),
        update=update,
        interface=Interface(arms(num_arms), space),
        clip=reward_clip(rewards),
        best_action=best_action,
    )

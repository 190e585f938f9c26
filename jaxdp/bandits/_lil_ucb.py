"""Best-arm identification by lil'UCB (based on the law of the iterated logarithm), on reports that users randomize."""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._best_arm import Sums, mean, reports_of
from jaxdp.bandits._means_kernels import largest_bound
from jaxdp.bandits._reports import feedback_privatizer
from jaxdp.core import Learner, Scalar, State, default_float, factory, guarantee_for, only, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.random import ties
from jaxdp.random.key_bits import own_word
from jaxdp.validation import check_choice, check_count, check_positive, check_probability

CONSTANTS = ("theory", "heuristic")
SLACK = 0.01  # gamma of constants="theory"


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces. Section Math of `lil_ucb` defines b, gamma, w and L.

    Attributes:
        randomizer: parameters of the randomizer of the reports.
        squared_width: [] float > 0, 2 (1 + gamma) ((1 + b) (1 + sqrt(gamma)))^2 times the variance proxy of a report.
        log_risk: [] float > 0, ln(1 / w).
        patience: [] float > 0, L. An arm is recommended once it has at least 1 + L n plays, where n is the number of
            plays of all other arms.
    """

    randomizer: Any
    squared_width: Scalar
    log_risk: Scalar
    patience: Scalar


class Public(NamedTuple):
    """Public state: statistics of the reports, and a random order for ties.

    Attributes:
        plays: [num_arms] integer, plays of each arm.
        sums: [num_arms] sums of each arm's reports.
        tie_word: [] uint32, a random word that determines how ties between arms are broken.
    """

    plays: jax.Array
    sums: Sums
    tie_word: jax.Array


@factory
def lil_ucb(*, num_arms: int, report: str = "rr", rewards: str = "binary", constants: str = "theory") -> Learner:
    r"""Plays the arm with the largest upper confidence bound until one arm has far more plays than all others together.

    First every arm is played once. Then the learner plays the arm with the largest bound on its mean (see Math). It
    stops as soon as the number of plays n_i of some arm i is at least 1 + L sum_{j != i} n_j, and recommends the arm
    with the most plays. Ties are broken by a random order of the arms, which each run draws once.

    Args:
        num_arms: number of arms K, >= 2.
        report: "rr" (randomized response) or "gaussian". Laplace noise is rejected, because its variance proxy is
            infinite.
        rewards: "binary" ([] int32, clipped to {0, 1}) or "bounded" ([] float, clipped to [reward_low, reward_high];
            NaN counts as `reward_low`).
        constants: "theory" or "heuristic". "theory": the constants of Theorem 2 (see Math). If there is a unique best
            arm, the recommendation after stopping is wrong with probability <= failure_prob. "heuristic": gamma = 0, b
            = 1/2, w = failure_prob / 5, L = 1 + 10 / K, and ln(n_i + 2) in place of ln((1 + gamma) n_i). The learner
            then stops several times earlier, but without this guarantee.

    Returns:
        A learner that may stop before the horizon; its actions and recommendations are arms ([] int32).

    Raises:
        ValueError: if num_arms < 2, or report, rewards or constants is not one of the names above. The result's
            `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        delta: with Gaussian reports, in (0, 1).
        failure_prob: in (0, 1), by default 0.05.
        reward_low, reward_high: the interval to which bounded rewards are clipped: finite, reward_low < reward_high; by
            default 0 and 1.

    Privacy:
        - Claim: epsilon-DP (randomized response) or (epsilon, delta)-DP (Gaussian) in the local model.
        - Unit: one round's reward; adjacency: replace one, by anything.
        - Why: A reward leaves the user's device once. Everything else, including the stopping time, is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Jamieson, Malloy, Nowak & Bubeck (2014), lil'UCB and Theorem 2. Applied to reports as in LDP-Bandits (Zheng,
        Cai, Huang, Li & Wang, 2020), Appendix B.2.

    Deviations:
        The default is randomized response; Zheng et al. add Gaussian noise, and do not clip. The randomized bit of a
        binary reward is used in place of the debiased report 1/2 + k (bit - 1/2), k = (e^epsilon + 1) / (e^epsilon -
        1). This changes no decision: the distances of means from 1/2 and the confidence radii are all smaller by the
        factor k.

    Math:
        With $\hat\mu_i$ the mean of the $n_i$ reports of arm $i$, and $\sigma^2$ the variance proxy of a report, the
        learner plays

        $$
        \operatorname{argmax}_i \; \hat\mu_i + (1 + b) (1 + \sqrt{\gamma})
        \sqrt{\frac{2 \sigma^2 (1 + \gamma)}{n_i} \ln \frac{\ln((1 + \gamma) n_i)}{w}}
        $$

        and stops as soon as $n_i \ge 1 + L \sum_{j \ne i} n_j$ for an arm $i$. For "theory", $\gamma = 0.01$, $b = 1$
        and

        $$
        w = \frac{(\sqrt{1 + \nu} - 1)^2}{4 C}, \quad
        C = \frac{2 + \gamma}{\gamma} \Big( \frac{1}{\ln(1 + \gamma)} \Big)^{1 + \gamma}, \quad
        L = 9 \Big( 1 + \frac{\ln(2 \ln(9 / w))}{\ln(1 / w)} \Big)
        $$

        where $\nu$ is `failure_prob`, a bound on the probability of a wrong recommendation. The variance proxy is
        $\sigma^2 = 1/4$ for the randomized bit of a binary reward. With $B$ half the width of the rewards'
        interval, it is

        $$
        \sigma^2 = (B c)^2, \quad c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$

        for randomized response of bounded rewards, and $B^2 + \tau^2$ for Gaussian reports, with $\tau$ the standard
        deviation of the noise, calibrated to the sensitivity $2 B$.

    Examples:
        >>> import jax, jaxdp
        >>> run = jaxdp.simulator(lil_ucb(num_arms=2), jaxdp.bandits.bernoulli_bandit([0.1, 0.9]), horizon=100_000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=4.0))
        >>> outputs["correct"].tolist(), outputs["censored"].tolist()
        ([True], False)
    """
    num_arms = check_count("num_arms", num_arms, 2)
    is_theory = check_choice("constants", constants, CONSTANTS) == "theory"
    reports = reports_of(report, rewards, num_arms)
    slack, widening = (SLACK, 1.0) if is_theory else (0.0, 0.5)  # gamma, b
    # The patience L is at least this number for every nu; with b = 1, ((2 + b) / b)^2 = 9.
    min_patience = 9.0 if is_theory else 1 + 10 / num_arms
    # At the earliest stop, every other arm has one play, and the recommended arm has 1 + L (K - 1) plays.
    min_rounds = math.ceil(1 + min_patience * (num_arms - 1)) + num_arms - 1

    def params(
        *,
        epsilon: float,
        delta: float = 0.0,
        failure_prob: float = 0.05,
        reward_low: float = 0.0,
        reward_high: float = 1.0,
    ) -> Params:
        check_probability("failure_prob", failure_prob)
        report_values = reports.pick_values(
            {"epsilon": epsilon, "delta": delta, "reward_low": reward_low, "reward_high": reward_high}
        )
        if is_theory:
            half = failure_prob / (math.sqrt(1 + failure_prob) + 1) / 2  # (sqrt(1 + nu) - 1) / 2 without cancellation
            factor = (2 + slack) / slack * (1 / math.log1p(slack)) ** (1 + slack)  # C
            log_risk = math.log(factor) - 2 * math.log(half)
            patience = min_patience * (1 + math.log(2 * (math.log(9) + log_risk)) / log_risk)
        else:
            log_risk, patience = math.log(5) - math.log(failure_prob), min_patience
        factor_of_proxy = ((1 + widening) * (1 + math.sqrt(slack))) ** 2 * 2 * (1 + slack)
        squared_width = factor_of_proxy * reports.variance_proxy(**report_values)
        width_name = "the squared width of confidence bounds (from epsilon and the range of rewards)"
        check_positive(width_name, squared_width)
        return Params(
            randomizer=reports.params(**report_values),
            squared_width=scalar_leaf(width_name, squared_width),
            log_risk=scalar_leaf("ln(1 / w)", log_risk),
            patience=scalar_leaf("the patience", patience),
        )

    def init(key, params: Params) -> State:
        del params
        return State((), Public(jnp.zeros(num_arms, jnp.result_type(int)), reports.zero_sums(num_arms), own_word(key)))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, context
        plays = jnp.maximum(public.plays, 1).astype(default_float())
        iterated = jnp.log(jnp.log((1 + slack) * plays if is_theory else plays + 2))
        radius = jnp.sqrt(params.squared_width * (iterated + params.log_risk) / plays)
        bound = jnp.where(public.plays > 0, mean(public.sums, public.plays) + radius, jnp.inf)
        return largest_bound(bound, public.tie_word)

    def update(key, params: Params, state: State, report) -> State:
        del key, params
        public, (action, reported) = state.public, report
        is_played = jnp.arange(num_arms, dtype=action.dtype) == action
        plays = public.plays + is_played.astype(public.plays.dtype)
        return State((), public._replace(plays=plays, sums=reports.add(public.sums, is_played, reported)))

    def done(params: Params, public: Public) -> jax.Array:
        rounds = jnp.sum(public.plays, dtype=public.plays.dtype)
        own_plays, other_plays = (plays.astype(default_float()) for plays in (public.plays, rounds - public.plays))
        return jnp.all(public.plays > 0) & jnp.any(own_plays >= 1 + params.patience * other_plays)

    def recommend(params: Params, public: Public) -> jax.Array:
        del params
        return ties.largest(public.plays, ties.ranks(public.tie_word, num_arms))

    values = only(params, (*reports.names, "failure_prob"))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, reports.claim),
        init=init,
        act=act,
        privatize=feedback_privatizer(reports.report, "randomizer"),
        update=update,
        done=done,
        recommend=recommend,
        interface=reports.interface,
        clip=reports.clip,
        min_horizon=min_rounds,
    )

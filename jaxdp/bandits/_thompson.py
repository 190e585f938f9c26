"""Thompson sampling on rewards that each user randomizes."""

import jax
import jax.numpy as jnp

from jaxdp.bandits._means import Means, no_means
from jaxdp.bandits._means_kernels import first_largest, update_means
from jaxdp.bandits._reports import feedback_privatizer, reward_clip, reward_reports
from jaxdp.bandits._unit_losses import UnitLosses, unit_loss, unit_losses
from jaxdp.core import Interface, Learner, State, arms, factory, guarantee_for, only
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import ScalarParams
from jaxdp.random import beta, fast_key
from jaxdp.validation import check_choice, check_count

REPORTS = ("rr",)
POSTERIORS = ("bits", "debiased")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        report: parameters of the randomizer.
        bits: the map from reports to losses in [0, 1]; a bit is 1 - loss.
    """

    report: ScalarParams
    bits: UnitLosses


@factory
def thompson(*, num_arms: int, posterior: str = "bits", rewards: str = "binary") -> Learner:
    r"""Draws each arm's mean from its posterior given randomized responses, and plays the arm with the largest draw.

    Let k be the number of ones among an arm's n reports. The posterior is

    * "bits": Beta(1 + k, 1 + n - k), the posterior of the probability that a report is one. This probability is an
      increasing affine function of the arm's mean, so the best arm has the largest probability;
    * "debiased": Beta(1 + a, 1 + b) with a = s n / c^2 and b = (1 - s) n / c^2, where s is the debiased fraction of
      ones, clipped to [0, 1], and c = (e^epsilon + 1) / (e^epsilon - 1). This posterior is a heuristic (see
      Deviations).

    Args:
        num_arms: number of arms, >= 2.
        posterior: "bits" or "debiased".
        rewards: "binary" ([] int32, clipped to {0, 1}) or "bounded" ([] float, clipped; NaN counts as `reward_low`).

    Returns:
        A learner that plays arms ([] int32).

    Raises:
        ValueError: if num_arms < 2, or posterior or rewards is not one of the names above. The result's `params` raises
            this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        reward_low, reward_high: the interval to which bounded rewards are clipped: finite, reward_low < reward_high; by
            default 0 and 1.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one round's reward; adjacency: replace one, by anything.
        - Why: A reward leaves the user's device once, by randomized response; everything else is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        Thompson (1933); Agrawal & Goyal (2012), Algorithm 1. At epsilon = inf with binary rewards, the learner with
        either posterior is this algorithm. With "bits", it is this algorithm on a Bernoulli bandit with gaps divided by
        c, so its regret is c times the regret on the smaller gaps (see Math).

    Deviations:
        *"debiased" is a heuristic under privacy*: n debiased reports have the variance of about n / c^2 rewards only if
        the mean is near 1/2. Near 0 or 1 the variance is larger, and the posterior is too narrow; no regret bound is
        known. Bounded rewards are randomized to bits only at finite epsilon. At epsilon = inf, k is the sum of the
        rewards scaled to [0, 1], whereas Agrawal & Goyal replace each reward by a random bit.

    Math:
        Round $t$ plays $\operatorname{argmax}_i \theta_i$, where the $\theta_i$ are drawn from

        $$
        \theta_i \sim \mathrm{Beta}(1 + k_i, \; 1 + n_i - k_i)
        $$

        for "bits", if $k_i$ of the $n_i$ reports of arm $i$ are ones, and for "debiased" from

        $$
        \theta_i \sim \mathrm{Beta}\Big( 1 + \frac{s_i n_i}{c^2}, \; 1 + \frac{(1 - s_i) n_i}{c^2} \Big), \quad
        c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}
        $$

        where $s_i$ is the debiased fraction of ones, clipped to $[0, 1]$.

        Let $\Delta_i$ be the gap of arm $i$. By the bound of Agrawal & Goyal, the expected regret of "bits" is of order

        $$
        c^5 \Big( \sum_{i : \Delta_i > 0} \frac{1}{\Delta_i^2} \Big)^2 \ln T
        $$

        and for two arms of order $c^2 \ln(T) / \Delta + c^4 / \Delta^3$.

    Examples:
        >>> import jax, jaxdp
        >>> run = jaxdp.simulator(thompson(num_arms=2), jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), horizon=1000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["pseudo_regret"][-1] < 100)  # uniformly random arms: 400
        True
    """
    num_arms = check_count("num_arms", num_arms, 2)
    is_debiased = check_choice("posterior", posterior, POSTERIORS) == "debiased"
    randomizer, space, names, randomizer_params, claim = reward_reports("rr", rewards, REPORTS)

    def params(*, epsilon: float, reward_low: float = 0.0, reward_high: float = 1.0) -> Params:
        leaves = randomizer_params(epsilon=epsilon, reward_low=reward_low, reward_high=reward_high)
        return Params(report=leaves, bits=unit_losses(leaves, "rr"))

    def init(key, params: Params) -> State:
        del key, params
        return State((), no_means(num_arms))

    def evidence(params: Params, public: Means) -> tuple[jax.Array, jax.Array]:
        """Returns the parameters of the Beta posteriors minus 1, [num_arms] float each: k and n - k, or a and b."""
        ones = jnp.maximum(public.sums.total - public.sums.excess, 0)
        plays = public.plays.astype(ones.dtype)
        if is_debiased:
            contrast = jnp.tanh(params.report.epsilon / 2)  # 1 / c
            share = jnp.clip(0.5 + (2 * ones - plays) / (2 * contrast * jnp.maximum(plays, 1)), 0, 1)
            ones, plays = contrast * contrast * plays * share, contrast * contrast * plays
        return ones, jnp.maximum(plays - ones, 0)

    def act(key, params: Params, public: Means, context: None) -> jax.Array:
        del context
        ones, zeros = evidence(params, public)
        return first_largest(beta(fast_key(key), 1 + ones, 1 + zeros))

    def update(key, params: Params, state: State, report) -> State:
        del key
        arm, reported = report
        return State((), update_means(state.public, arm, 1 - unit_loss(params.bits, reported)))

    def best_action(params: Params, public: Means) -> jax.Array:
        ones, zeros = evidence(params, public)
        return first_largest((1 + ones) / (2 + ones + zeros))

    values = only(params, names)
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

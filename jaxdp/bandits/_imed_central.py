"""IMED and KL-UCB in the central model: indices that account for the Laplace noise of released totals."""

import jax
import jax.numpy as jnp

from jaxdp.bandits._arm_blocks import ArmBlocks
from jaxdp.bandits._divergence import divergence, largest_mean
from jaxdp.bandits._means_kernels import largest_bound
from jaxdp.core import Guarantee, Learner, Scalar, factory, guarantee_for, leaf_rounded_down, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.random import ties
from jaxdp.validation import check_choice, check_count, check_positive

INDICES = ("imed", "kl_ucb")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        growth: [] float > 0, the plays of a block divided by the arm's plays before this block.
    """

    epsilon: Scalar
    growth: Scalar


@factory
def imed_central(*, num_arms: int, index: str = "imed") -> Learner:
    r"""Plays arms in growing blocks, and chooses the next arm by a divergence that accounts for the totals' noise.

    A block plays one arm. The first block of an arm has one play. A later block has max(1, floor(`growth` * n)) plays,
    where n counts the arm's plays in earlier blocks. At the end of a block its total reward is released with Laplace(1
    / epsilon) noise, and the next arm is chosen. All totals of an arm are added, so no reward is forgotten. Arms that
    have not been played are played first, one after another. Among equal indices, each arm is equally likely.

    * "imed": plays the arm with the smallest n d + ln n. Here d is the divergence (see Math) between the arm's
      estimated mean and the largest estimated mean, and n the number of the arm's plays. The arm with the largest
      estimated mean has d = 0.
    * "kl_ucb": plays the arm with the largest index. An arm's index is the largest mean with a divergence of at most
      (ln t) / n from the arm's estimated mean.

    Args:
        num_arms: number of arms, >= 2.
        index: "imed" or "kl_ucb".

    Returns:
        A learner for binary rewards ([] int32, clipped to {0, 1}); its actions are arms ([] int32). It can also be
        simulated by blocks or counts.

    Raises:
        ValueError: if num_arms < 2 or index is not one of the names above. The result's `params` raises this error if a
            value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        growth: > 0 and finite, by default 1: doubling blocks. A smaller growth has a lower median regret. But the index
            accounts for the noise of only one release per arm, and a smaller growth has more blocks, so more releases.
            At small epsilon, more runs then abandon the best arm permanently.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's reward; adjacency: replace one.
        - Sensitivity: A reward adds at most 1 to one total of one arm, and each total is released once with Laplace(1 /
          epsilon) noise. The arms and the ends of blocks are functions of earlier releases. So different blocks contain
          different users, and parallel composition applies (docs/proofs/noisy_totals.md).
        - Released: `sums`.
        - Private: `total`.

    Source:
        Azize, Wu, Honda, Orabona, Ito & Basu (2025), DP-IMED and DP-KLUCB, arXiv 2505.05613; Honda & Takemura (2015)
        for IMED.

    Deviations:
        *The paper's text was not available.* Only its abstract was read, and a summary by others. The summary states
        the divergence, both indices, that blocks grow by a constant factor, and that past rewards are kept. The lengths
        of the first blocks, the growth factor in the paper's experiments, and its tie-breaking could not be compared.
        According to the summary, the regret divided by ln T is asymptotically at most the sum of (1 + growth) gap / d
        over all suboptimal arms; the proof was not read. The noise is a multiple of a small step, as in `laplace`.

    Math:
        Let $\hat\mu_i$ be the sum of arm $i$'s released totals divided by its number of plays $n_i$, clipped to $[0,
        1]$, and $\hat\mu^* = \max_i \hat\mu_i$. With

        $$
        d_\varepsilon(x, y) = \min_{x \le z \le y} \; \varepsilon (z - x) + \mathrm{kl}(z, y)
        $$

        for $x \le y$, and 0 for $x > y$, round $t$ plays

        $$
        \operatorname{argmin}_i \; n_i d_\varepsilon(\hat\mu_i, \hat\mu^*) + \ln n_i
        \quad \text{or} \quad
        \operatorname{argmax}_i \; \max \{ y : d_\varepsilon(\hat\mu_i, y) \le \frac{\ln t}{n_i} \}
        $$

    Examples:
        >>> import jax, jaxdp
        >>> run = jaxdp.simulator(imed_central(num_arms=2), jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), horizon=10**6)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["pseudo_regret"][-1] < 200)
        True
    """
    num_arms, is_imed = check_count("num_arms", num_arms, 2), check_choice("index", index, INDICES) == "imed"

    def params(*, epsilon: float, growth: float = 1.0) -> Params:
        return Params(
            epsilon=leaf_rounded_down("epsilon", check_laplace(epsilon)),
            growth=scalar_leaf("growth", check_positive("growth", growth)),
        )

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one round's reward",
            argument="each reward enters one total, released once by Laplace noise, at L1 sensitivity 1",
            numerical_delta=laplace_delta(epsilon),
        )

    def choose(key, params: Params, rounds: jax.Array, plays: jax.Array, sums: jax.Array) -> jax.Array:
        n = jnp.maximum(plays, 1).astype(sums.dtype)
        means = jnp.clip(sums / n, 0, 1)
        if is_imed:
            best = jnp.max(jnp.where(plays > 0, means, 0))
            scores = -n * divergence(means, best, params.epsilon) - jnp.log(n)
        else:
            scores = largest_mean(means, jnp.log(1 + rounds.astype(sums.dtype)) / n, params.epsilon)
        return largest_bound(jnp.where(plays > 0, scores, jnp.inf), ties.word_beside(key))

    blocks = ArmBlocks(num_arms, choose, growth=lambda params: params.growth)
    return blocks.learner(params, guarantee_for(params, claim))

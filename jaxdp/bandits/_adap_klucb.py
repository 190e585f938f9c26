"""AdaP-KLUCB in the central model: KL-UCB computed from the noisy mean of each arm's last block."""

import jax
import jax.numpy as jnp

from jaxdp.bandits._arm_blocks import ArmBlocks
from jaxdp.bandits._divergence import largest_mean
from jaxdp.bandits._means_kernels import largest_bound
from jaxdp.core import Guarantee, Learner, Scalar, factory, guarantee_for, leaf_rounded_down, scalar_leaf
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.random import ties
from jaxdp.validation import check_count, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        exploration_rate: [] float > 0. After t rounds, the noise in a total exceeds x / epsilon with probability at
            most (t + 1)^-exploration_rate / 2; `adap_klucb` defines x.
    """

    epsilon: Scalar
    exploration_rate: Scalar


@factory
def adap_klucb(*, num_arms: int) -> Learner:
    r"""Plays arms in doubling blocks, and chooses the next arm by KL-UCB from the noisy totals of the last blocks.

    A block plays a single arm as often as this arm was played before the block; an arm's first block has one play. So
    an arm has 1, 2, 4, 8, ... plays at the ends of its blocks. At the end of a block, the block's total reward is
    released with Laplace(1 / epsilon) noise. This total replaces the arm's earlier total, so rewards of earlier blocks
    are forgotten. Let m be the number of rewards in an arm's total, x = exploration_rate ln(t + 1) after t rounds, and
    p the arm's noisy mean plus x / (epsilon m), clipped to [0, 1]. The index of the arm is the largest q with kl(p, q)
    <= x / m, where kl is the relative entropy of two Bernoulli distributions. The arm with the largest index is played
    next. Arms that have not been played are played first. Among equal indices, each arm is equally likely.

    This is a published baseline. On the paper's five arms with means from 0.75 to 0.25, after 10^5 rounds,
    `ucb_central` has less regret than this learner at epsilon 1/4, 1 and 10, and more at 0.03 and 0.1. On five arms
    with means from 0.9 to 0.5, `ucb_central` has more regret at 0.1, 1 and 10. `imed_central` has far less regret than
    both.

    Args:
        num_arms: number of arms, >= 2.

    Returns:
        A learner for binary rewards ([] int32, clipped to {0, 1}); its actions are arms ([] int32). It can also be
        simulated by blocks or counts.

    Raises:
        ValueError: if num_arms < 2. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        exploration_rate: > 0 and finite, by default 3.1, as in the paper's experiments. The paper's regret bound needs
            more than 3.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's reward; adjacency: replace one.
        - Sensitivity: A reward adds at most 1 to one total of one arm, and each total is released once with Laplace(1 /
          epsilon) noise. The arms and the ends of blocks are functions of earlier releases. So different blocks contain
          different users, and parallel composition applies (docs/proofs/noisy_totals.md).
        - Released: `sums`.
        - Private: `total`.

    Source:
        Azize & Basu (2022), Algorithm 1 with the index of AdaP-KLUCB.

    Deviations:
        The paper divides by half of an arm's plays, which is 1/2 after the first play; here m is 1 in this case, the
        number of rewards. The paper does not say how it breaks ties. It adds Laplace noise of scale 1 / (epsilon m) to
        the mean; here the noise is added to the total, before the division by m. The noise is a multiple of a small
        step, as in `laplace`. Only an anonymous version of the paper without its supplement was available, so the
        constants in its regret bound could not be checked.

    Math:
        Let $\tilde\mu_i$ be the noisy total of arm $i$'s last block divided by its number of rewards $m_i$. After $t -
        1$ rounds the learner plays the arm with the largest

        $$
        \max \left\{ q \in [0, 1] : \mathrm{kl}(\bar\mu_i, q) \le \frac{\alpha \ln t}{m_i} \right\}, \quad
        \bar\mu_i = \min \left\{ 1, \max \left\{ 0, \tilde\mu_i + \frac{\alpha \ln t}{\varepsilon m_i} \right\} \right\}
        $$

        where $\alpha$ is `exploration_rate`.

    Examples:
        >>> import jax, jaxdp
        >>> run = jaxdp.simulator(adap_klucb(num_arms=2), jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), horizon=10**6)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["pseudo_regret"][-1] < 1000)
        True
    """
    num_arms = check_count("num_arms", num_arms, 2)

    def params(*, epsilon: float, exploration_rate: float = 3.1) -> Params:
        return Params(
            epsilon=leaf_rounded_down("epsilon", check_laplace(epsilon)),
            exploration_rate=scalar_leaf("exploration_rate", check_positive("exploration_rate", exploration_rate)),
        )

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one round's reward",
            argument="each reward enters one total, released once by Laplace noise, at L1 sensitivity 1",
            numerical_delta=laplace_delta(epsilon),
        )

    def choose(key, params: Params, rounds: jax.Array, num_rewards: jax.Array, sums: jax.Array) -> jax.Array:
        m = jnp.maximum(num_rewards, 1).astype(sums.dtype)
        level = params.exploration_rate * jnp.log(1 + rounds.astype(sums.dtype)) / m
        means = jnp.clip(sums / m + level / params.epsilon, 0, 1)
        indices = largest_mean(means, level, jnp.inf)  # at an infinite budget the divergence is the relative entropy
        return largest_bound(jnp.where(num_rewards > 0, indices, jnp.inf), ties.word_beside(key))

    blocks = ArmBlocks(num_arms, choose, growth=lambda params: 1.0, forgets=True)
    return blocks.learner(params, guarantee_for(params, claim))

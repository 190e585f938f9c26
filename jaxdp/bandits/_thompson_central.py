"""Thompson sampling in the central model, from the noisy totals of blocks of rewards."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits._means import add_play
from jaxdp.bandits._means_kernels import first_largest
from jaxdp.bandits._reports import ENDS, REWARDS, integer_scale
from jaxdp.core import (
    Guarantee,
    Interface,
    Learner,
    Scalar,
    Space,
    State,
    arms,
    default_float,
    factory,
    guarantee_for,
    interval_leaves,
    leaf_rounded_down,
    only,
    scalar_leaf,
)
from jaxdp.core.central import reveal_feedback
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms.additive import geometric, laplace
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import geometric_delta, laplace_delta
from jaxdp.mechanisms.some_lanes import in_flagged_lanes
from jaxdp.numerics import compensated, fixed_point
from jaxdp.numerics.kernels import own_kernel
from jaxdp.random import beta, fast_key
from jaxdp.validation import check_choice, check_count, check_positive


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        growth: [] float > 0, the plays of a block divided by the arm's plays before this block.
        noise_weight: [] float > 0, the factor that multiplies the variance of the noise in the posterior's variance.
        low, high: [] float, low < high, the interval to which bounded rewards are clipped; for binary rewards 0 and 1.
        scale: [] float, 2^20 / (high - low), the factor that converts a bounded reward to integer units.
    """

    epsilon: Scalar
    growth: Scalar
    noise_weight: Scalar
    low: Scalar
    high: Scalar
    scale: Scalar


class Private(NamedTuple):
    """The curator's private state.

    Attributes:
        totals: [num_arms], the sum of rewards in each arm's current block. For binary rewards it is an integer; for
            bounded rewards, a `fixed_point.Sum` of (reward - reward_low) / (reward_high - reward_low).
    """

    totals: Any


class Public(NamedTuple):
    """Public state: released values, and numbers of plays.

    Attributes:
        plays: [num_arms] integer, plays of each arm in blocks that have ended.
        waiting: [num_arms] integer, plays of each arm in its current block.
        blocks: [num_arms] integer, number of each arm's blocks that have ended.
        sums: [num_arms] compensated sums of each arm's noisy totals.
    """

    plays: jax.Array
    waiting: jax.Array
    blocks: jax.Array
    sums: compensated.Sum


@factory
def thompson_central(*, num_arms: int, rewards: str = "binary") -> Learner:
    r"""Draws each arm's mean from its posterior given noisy totals of blocks, and plays the arm with the largest draw.

    An arm's rewards are summed in blocks. The first block has one play. A later block has max(1, floor(`growth` * n))
    plays, where n counts the arm's plays in earlier blocks. When an arm's block ends, its total is released with noise.
    For binary rewards, the noise is two-sided geometric: it is the integer k with probability proportional to
    exp(-epsilon |k|). Bounded rewards are scaled to [0, 1], and the noise is Laplace(1 / epsilon). The means of all
    arms are drawn again in every round, so the plays of a block need not be consecutive.

    Args:
        num_arms: number of arms, >= 2.
        rewards: "binary" ([] int32, clipped to {0, 1}) or "bounded" ([] float, clipped; NaN counts as `reward_low`).

    Returns:
        A learner that plays arms ([] int32).

    Raises:
        ValueError: if num_arms < 2, or rewards is not one of the names above. The result's `params` raises this error
            if a value is out of range, or 2^20 / (reward_high - reward_low) exceeds the largest float.

    Values:
        epsilon: the privacy budget, > 0.
        growth: > 0 and finite, by default 1/8.
        noise_weight: > 0 and finite, by default 1: the factor that multiplies the variance of the noise in the
            posterior's variance (nu in Math).
        reward_low, reward_high: only for bounded rewards, the interval to which rewards are clipped: finite, reward_low
            < reward_high; by default 0 and 1.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's reward; adjacency: replace one.
        - Sensitivity: A reward, scaled to [0, 1], adds at most 1 to one total of one arm, and each total is released
          once with noise for this sensitivity. The arms and the ends of blocks depend on rewards only through earlier
          releases. Given these releases, each block consists of fixed rounds, and blocks do not overlap. So parallel
          composition applies (docs/proofs/noisy_totals.md).
        - Released: `sums`.
        - Private: `totals`.

    Source:
        Hu & Hegde (2022), "Near-optimal Thompson sampling-based algorithms for differentially private stochastic
        bandits", for Thompson sampling with a curator; Agrawal & Goyal (2012), Algorithm 1, for the posterior. The
        blocks, the noise of their totals and the wider posterior are ours.

    Deviations:
        *The posterior is a heuristic*, and no regret bound is proved. The proofs of Hu & Hegde need a posterior that is
        shifted upwards, and their lazy algorithm forgets earlier blocks; here the totals of all blocks are added. Only
        the abstract of their paper was available. They add Laplace noise. Geometric noise is integer-valued, and has a
        smaller variance. Bounded rewards are rounded to multiples of 2^-20 of their range, and summed as integers;
        Agrawal & Goyal instead replace each one by a random bit. The defaults were chosen by simulations with 8 arms.

        *A run may abandon the best arm for a long time*, if the noise of its first blocks is very negative. At epsilon
        1, with 8 arms of means 0.7 and 0.5, none of 400 runs of 20,000 rounds had a regret above 1,000; the mean regret
        was 228. With `noise_weight` 1/2 the mean regret was 199, but the regret exceeded 1,000 in two of 400 runs of
        this length, and 25,000 in two of 20 runs of 10^6 rounds. With the default, the largest regret of 100 runs of
        10^6 rounds was 429, and the mean 329 (docs/explanation/trust_models.md).

    Math:
        Let $\tilde S_i$ be the sum of arm $i$'s $J_i$ released totals, clipped to $[0, n_i]$, of $n_i$ plays. Round $t$
        plays $\operatorname{argmax}_i \theta_i$ with

        $$
        \theta_i \sim \mathrm{Beta}(1 + w_i \tilde S_i, \; 1 + w_i (n_i - \tilde S_i)), \quad
        w_i = \frac{1}{1 + 4 \nu J_i V / n_i}, \quad
        V = \frac{1}{2 \sinh^2(\varepsilon / 2)}
        $$

        where $\nu$ is `noise_weight`, and $V = 2 / \varepsilon^2$ for bounded rewards. The noise of $J_i$ totals has
        variance $J_i V$, and $n_i$ rewards of mean 1/2 have variance $n_i / 4$: with $\nu = 1$ the posterior has the
        variance of both together.

    Examples:
        >>> import jax, jaxdp
        >>> world = jaxdp.bandits.bernoulli_bandit([0.9, 0.1])
        >>> run = jaxdp.simulator(thompson_central(num_arms=2), world, horizon=1000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["pseudo_regret"][-1] < 100)  # uniformly random arms: 400
        True
    """
    num_arms, integer = check_count("num_arms", num_arms, 2), jnp.result_type(int)
    is_binary = check_choice("rewards", rewards, REWARDS) == "binary"
    kind = "two-sided geometric" if is_binary else "Laplace"

    def params(
        *,
        epsilon: float,
        growth: float = 0.125,
        noise_weight: float = 1.0,
        reward_low: float = 0.0,
        reward_high: float = 1.0,
    ) -> Params:
        low, high = interval_leaves(reward_low, reward_high, names=ENDS)
        return Params(
            epsilon=leaf_rounded_down("epsilon", check_laplace(epsilon)),
            growth=scalar_leaf("growth", check_positive("growth", growth)),
            noise_weight=scalar_leaf("noise_weight", check_positive("noise_weight", noise_weight)),
            low=low,
            high=high,
            scale=integer_scale(low, high),
        )

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one round's reward",
            argument=f"each reward enters one total, released once by {kind} noise, at sensitivity 1",
            numerical_delta=geometric_delta(epsilon) if is_binary else laplace_delta(epsilon),
        )

    def init(key, params: Params) -> State:
        del key, params
        zeros = jnp.zeros(num_arms, integer)
        totals = zeros if is_binary else fixed_point.zero(num_arms)
        return State(
            Private(totals), Public(zeros, zeros, zeros, compensated.zero(jnp.zeros(num_arms, default_float())))
        )

    def evidence(params: Params, public: Public) -> tuple[jax.Array, jax.Array]:
        """Returns the parameters of the Beta posteriors minus 1, [num_arms] float each."""
        sums = public.sums.total - public.sums.excess
        plays, blocks = public.plays.astype(sums.dtype), public.blocks.astype(sums.dtype)
        ones = jnp.clip(sums, 0, plays)
        spread = jnp.sinh(params.epsilon / 2) if is_binary else params.epsilon / 2  # (2 V)^(-1/2)
        noise = 2 * params.noise_weight * blocks / jnp.maximum(plays, 1) / spread / spread  # 4 nu J V / n
        return ones / (1 + noise), (plays - ones) / (1 + noise)

    def to_units(params: Params, reward: jax.Array) -> jax.Array:
        return fixed_point.units(reward - params.low, jnp.asarray(params.scale))

    def add(totals: Any, params: Params, is_played: jax.Array, reward: jax.Array) -> Any:
        if is_binary:
            return totals + jnp.where(is_played, jnp.clip(reward, 0, 1).astype(integer), 0)
        units = own_kernel(to_units, params, reward)  # so that it is not recomputed for each arm
        return fixed_point.add(totals, jnp.where(is_played, units, 0))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        ones, zeros = evidence(params, public)
        return first_largest(beta(fast_key(key), 1 + ones, 1 + zeros))

    def update(key, params: Params, state: State, report) -> State:
        arm, reward = report
        is_played = jnp.arange(num_arms, dtype=arm.dtype) == arm
        totals = add(state.private.totals, params, is_played, reward)
        public: Public = state.public._replace(waiting=add_play(state.public.waiting, arm))

        def end_block(key: jax.Array, params: Params, total: Any, is_played: jax.Array, public: Public) -> Public:
            if is_binary:
                noisy = geometric(key, total, params.epsilon)
            else:
                noisy = laplace(key, total, params.epsilon, l1_sensitivity=1.0)
            return Public(
                plays=public.plays + jnp.where(is_played, public.waiting, 0),
                waiting=jnp.where(is_played, 0, public.waiting),
                blocks=public.blocks + is_played.astype(integer),
                sums=compensated.add(public.sums, jnp.where(is_played, noisy, 0)),
            )

        waiting, plays = public.waiting[arm], public.plays[arm]
        length = jnp.maximum(jnp.floor(params.growth * plays.astype(default_float())), 1)
        is_end = waiting.astype(length.dtype) >= length
        total = jax.tree.map(lambda word: word[arm], totals)
        after = in_flagged_lanes(is_end, end_block, public, key, params, total, is_played, public)
        return State(Private(jax.tree.map(lambda word: jnp.where(is_played & is_end, 0, word), totals)), after)

    def best_action(params: Params, public: Public) -> jax.Array:
        ones, zeros = evidence(params, public)
        return first_largest((1 + ones) / (2 + ones + zeros))

    values = only(params, ("epsilon", "growth", "noise_weight", *(() if is_binary else ENDS)))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=reveal_feedback,
        update=update,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1) if is_binary else Space("numbers")),
        best_action=best_action,
        clip=None if is_binary else lambda params: (params.low, params.high),
    )

"""Explore-then-commit with a single private release."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits import _explore_then_commit_bulk as bulk
from jaxdp.bandits._reports import ENDS, REWARDS, integer_scale
from jaxdp.core import (
    Guarantee,
    Interface,
    Learner,
    Scalar,
    Space,
    State,
    arms,
    factory,
    guarantee_for,
    interval_leaves,
    leaf_rounded_down,
    only,
)
from jaxdp.core.central import reveal_feedback
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import noisy_leads
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.numerics import fixed_point
from jaxdp.numerics.kernels import own_kernel
from jaxdp.random import ties
from jaxdp.validation import check_choice, check_count


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        low: [] float, the lower end of the interval to which rewards are clipped.
        high: [] float, the upper end of this interval.
        scale: [] float, 2^20 / (high - low), the factor that converts a bounded reward to integer units.
    """

    epsilon: Scalar
    low: Scalar
    high: Scalar
    scale: Scalar


class Private(NamedTuple):
    """The curator's private state.

    Attributes:
        totals: [num_arms] sums of each arm's rewards during exploration. For binary rewards: int32 (int64 in 64-bit
            mode). For bounded rewards: a `fixed_point.Sum` of (reward - reward_low) / (reward_high - reward_low).
    """

    totals: Any


class Public(NamedTuple):
    """Public state: released values.

    Attributes:
        round: [] integer, rounds played.
        best_arm: [] int32, the arm to which the learner has committed; -1 during exploration.
    """

    round: jax.Array
    best_arm: jax.Array


@factory
def explore_then_commit(*, num_arms: int, explore_rounds: int, rewards: str = "binary") -> Learner:
    r"""Plays every arm in turn, then commits to the arm with the largest noisy total of rewards.

    Among equal noisy totals, each arm is equally likely.

    Args:
        num_arms: number of arms, >= 2.
        explore_rounds: number of rounds of exploration, a positive multiple of num_arms.
        rewards: "binary" ([] int32, clipped to {0, 1}) or "bounded" ([] float, clipped; NaN counts as `reward_low`).

    Returns:
        A learner that plays arms ([] int32). It supports blocks. It supports counts only for binary rewards, because
        bounded rewards must be clipped one by one.

    Raises:
        ValueError: if num_arms < 2, explore_rounds is not a positive multiple of num_arms or exceeds the largest
            integer, or rewards is not one of the names above. The result's `params` raises this error if a value is out
            of range, or 2^20 / (reward_high - reward_low) exceeds the largest float.

    Values:
        epsilon: the privacy budget, > 0.
        reward_low, reward_high: the interval to which bounded rewards are clipped: finite, reward_low < reward_high; by
            default 0 and 1.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's reward; adjacency: replace one.
        - Sensitivity: A reward enters one arm's total once. The totals, divided by reward_high - reward_low for bounded
          rewards, therefore have L1 sensitivity 1. They are released once, with Laplace(1 / epsilon) noise for each
          arm.
        - Released: `best_arm`, which is post-processing of the noisy totals.
        - Private: `totals`.

    Source:
        Standard; the Laplace mechanism is Dwork & Roth (2014), Theorem 3.6.

    Deviations:
        Bounded rewards are rounded to multiples of 2^-20 of their range, and summed as integers; both ends of the range
        are exact. Noisy totals are compared by their differences from the largest one (`noisy_leads`), because large
        totals with small differences may be the same float. Noise is as in `laplace`.

    Math:
        After $m$ rounds of exploration the learner commits to the arm with the largest noisy total,

        $$
        \hat a = \operatorname{argmax}_i \Big( \sum_{t \le m,\, a_t = i} x_t + Z_i \Big), \quad Z_i \sim \mathrm{Lap}(b)
        $$

        where bounded rewards $x_t$ are rescaled from their interval to $[0, 1]$, and

        $$
        b = \frac{1}{\varepsilon}
        $$

    Examples:
        >>> import jax, jaxdp
        >>> learner = explore_then_commit(num_arms=2, explore_rounds=100)
        >>> run = jaxdp.simulator(learner, jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), horizon=1000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> outputs["best_arm_plays"].tolist(), [round(r) for r in outputs["pseudo_regret"].tolist()]
        ([950], [40])
    """
    num_arms, explore_rounds = check_count("num_arms", num_arms, 2), check_count("explore_rounds", explore_rounds)
    if explore_rounds % num_arms:
        raise ValueError(f"explore_rounds must be a positive multiple of num_arms={num_arms}, got {explore_rounds}")
    binary = check_choice("rewards", rewards, REWARDS) == "binary"

    def params(*, epsilon: float, reward_low: float = 0.0, reward_high: float = 1.0) -> Params:
        lowest, highest = interval_leaves(reward_low, reward_high, names=ENDS)
        budget = leaf_rounded_down("epsilon", check_laplace(epsilon, numbers=num_arms))
        return Params(epsilon=budget, low=lowest, high=highest, scale=integer_scale(lowest, highest))

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one round's reward",
            argument="each reward enters one total; all totals are released once by the Laplace mechanism",
            numerical_delta=laplace_delta(epsilon, spread=1 if binary else num_arms),
        )

    def init(key, params: Params) -> State:
        del key
        integer = jnp.result_type(int)
        totals = jnp.zeros(num_arms, integer) if binary else fixed_point.zero(num_arms)
        return State(Private(totals), Public(jnp.zeros((), integer), jnp.int32(-1)))

    def arm(round_: jax.Array, best_arm: jax.Array) -> jax.Array:
        return jnp.where(round_ < explore_rounds, (round_ % num_arms).astype(jnp.int32), best_arm)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return arm(public.round, public.best_arm)

    def update(key, params: Params, state: State, report) -> State:
        action, reward = report
        is_played = jnp.arange(num_arms, dtype=action.dtype) == action
        integer_reward = own_kernel(to_integers, params, reward)  # not recomputed for each arm
        totals = add(state, jnp.where(is_played, integer_reward, 0))
        return advance(key, params, state, totals, jnp.ones_like(state.public.round))

    def to_integers(params: Params, rewards: jax.Array) -> jax.Array:
        """Clips rewards to integers: 0 or 1 if binary, else from 0 (`reward_low`) to 2^20 (`reward_high`)."""
        if binary:
            return jnp.clip(rewards, 0, 1).astype(jnp.result_type(int))
        return fixed_point.units(rewards - params.low, jnp.asarray(params.scale))

    def add(state: State, more: jax.Array) -> Any:
        more = jnp.where(state.public.round < explore_rounds, more, 0)
        return state.private.totals + more if binary else fixed_point.add(state.private.totals, more)

    def advance(key, params: Params, state: State, totals: Any, played: jax.Array) -> State:
        """Advances the state by `played` rounds to `totals`; commits to an arm if these rounds end the exploration."""
        public: Public = state.public
        round_ = public.round + played
        best_arm = branch(
            round_ == explore_rounds,
            lambda: release(key, params, totals),
            lambda: public.best_arm,
        )
        return State(Private(totals), Public(round_, best_arm))

    def release(key, params: Params, totals: Any) -> jax.Array:
        leads = noisy_leads(key, totals, params.epsilon, l1_sensitivity=1.0)
        return ties.largest(leads, ties.ranks(ties.word_beside(key), num_arms))

    def best_action(params: Params, public: Public) -> jax.Array:
        del params
        return jnp.maximum(public.best_arm, 0)  # arm 0 before the release, when no arm is known to be better

    algorithm = bulk.Algorithm(num_arms, explore_rounds, arm, to_integers, add, advance)
    values = only(params, ("epsilon",) if binary else ("epsilon", *ENDS))
    return Learner(
        params=values,
        guarantee=guarantee_for(values, claim),
        init=init,
        act=act,
        privatize=reveal_feedback,
        update=update,
        blocks=(bulk.blocks(algorithm),),
        counts=bulk.counts(algorithm) if binary else None,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1) if binary else Space("numbers")),
        min_horizon=explore_rounds + 1,  # in fewer rounds the learner never commits
        clip=None if binary else lambda params: (params.low, params.high),
        best_action=best_action,
    )

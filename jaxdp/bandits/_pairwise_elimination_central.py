"""Best-arm identification by tests of pairs of arms, on the noisy totals that a curator releases after each epoch."""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

from jaxdp.bandits import _successive_elimination_central_bulk as bulk
from jaxdp.bandits._best_arm import num_active
from jaxdp.bandits._pairwise_elimination_central_plan import NUM_EPOCHS, ends_of_epochs, stakes_and_weights
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
    leaf_rounded_down,
    scalar_leaf,
)
from jaxdp.core.central import reveal_feedback
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import laplace
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import any_lane
from jaxdp.numerics.lookup import nth_true
from jaxdp.random import ties
from jaxdp.random.key_bits import own_word
from jaxdp.validation import (
    check_at_least,
    check_count,
    check_number,
    check_probability,
    check_within,
)

LEAST_GROWTH = 0.05
# After n plays of each arm, the third and each later epoch has at least about min(n, SPACING sqrt(n) / epsilon) plays
# of each arm, because each release costs power.
SPACING = 4.0
# A test clips the fraction of ones s to [LEAST_RATE, 1 - LEAST_RATE]; a test of the tolerance w also clips it to
# [w / 2, 1 - w / 2].
LEAST_RATE = 1e-4


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces. The docstring of `pairwise_elimination_central` defines the symbols.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        ends: [NUM_EPOCHS] integer, plays of each active arm at the end of each epoch; the largest integer means that
            the epoch never ends.
        stakes: [NUM_STAKES] float in (0, 1), the stakes v in section Math of `pairwise_elimination_central`.
        log_weights: [NUM_STAKES] float, logarithms of the stakes' weights in the e-value.
        tolerance: [] float in [0, 1), w.
        threshold: [] float; a test rejects if the logarithm of the e-value is at least this number.
        rounding: [] float, an upper bound, up to a relative error of 0.1%, on the spacing of the grid to which noise is
            rounded down.
    """

    epsilon: Scalar
    ends: np.ndarray
    stakes: np.ndarray
    log_weights: np.ndarray
    tolerance: Scalar
    threshold: Scalar
    rounding: Scalar


class Private(NamedTuple):
    """The curator's private state.

    Attributes:
        totals: [num_arms] integer, each arm's sum of rewards in the current epoch; reset to zero in the first round of
            an epoch.
    """

    totals: jax.Array


class Public(NamedTuple):
    """Public state: released values, and the position in the epoch.

    Attributes:
        active: [num_arms] bool, the arms that remain.
        epoch: [] int32, number of epochs that have ended.
        played: [] integer, rounds played in the current epoch.
        rates: [num_arms] float, each arm's noisy fraction of ones in the first epoch.
        sums: [num_arms] compensated sums of each arm's noisy totals, over all epochs after the first epoch.
        near: [num_arms] bool, the arms that tests have shown to be at most the tolerance worse than every other active
            arm.
        tie_word: [] uint32, a random word that determines how the recommendation breaks ties between arms.
    """

    active: jax.Array
    epoch: jax.Array
    played: jax.Array
    rates: jax.Array
    sums: compensated.Sum
    near: jax.Array
    tie_word: jax.Array


@factory
def pairwise_elimination_central(*, num_arms: int) -> Learner:
    r"""Plays the remaining arms in turn, in epochs, and drops an arm once noisy totals show that this arm is worse.

    After each epoch, the curator counts the ones of each active arm in this epoch, adds Laplace(1 / epsilon) noise, and
    releases the noisy totals once. From the noisy totals the learner computes an e-value for every two active arms x
    and y (see Math). The expectation of the e-value is at most 1 if y is not better than x. Arm x is dropped once the
    e-value against x, for some active arm y, is at least (num_arms - 1) / failure_prob, or twice this number with a
    tolerance.

    Epochs are public and fixed in advance. The first epoch is short. The second epoch ends at `first_look` plays of
    each active arm. After n plays of each arm, a later epoch has about max(`growth` n, min(n, 4 sqrt(n) / epsilon))
    plays of each arm.

    With a tolerance w > 0, the learner also stops once the tests show that some active arm is at most w worse than
    every other active arm. Without a tolerance it may never stop if several arms are equally good.

    Args:
        num_arms: number of arms K, >= 2.

    Returns:
        A learner for binary rewards ([] int32, clipped to {0, 1}) that plays and recommends arms ([] int32). It
        supports blocks and counts, and may stop before the horizon. The probability that it stops and recommends an arm
        that is worse than the best arm (with a tolerance w: by more than w) is at most failure_prob. Before it stops,
        for example at a horizon that is too short, its recommendation is only a guess.

    Raises:
        ValueError: if num_arms < 2. The result's `params` raises this error if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), by default 0.05.
        tolerance: w in [0, 1), by default 0: the maximum accepted difference between the best arm's mean reward and the
            recommended arm's mean reward.
        log_odds_ratio: the anticipated effect, > 0: the log odds of the best arm minus the log odds of the second-best
            arm. By default None: the stakes then cover effects of all sizes, and about 1.4 times as many rounds are
            needed. If the anticipated effect is wrong, more rounds are needed, but the failure probability and privacy
            do not change. It must be at least 8 times the smallest normal float, and at most an eighth of the largest.
        first_look: plays of each arm at the first test, an integer >= 2 and < 2^30 (in 64-bit mode: < 2^62). The first
            epoch has a sixteenth of these plays, rounded down, but at least 1 and at most p = 64 + 64 / epsilon plays.
            By default None: the first test takes place after 80 + 64 / epsilon + 16 / epsilon^2 plays of each arm: p in
            the first epoch, and 16 + 16 / epsilon^2 in the second. Both numbers are rounded up, and are limited to
            2^29 - 1 and 2^28 - 1 (in 64-bit mode: 2^61 - 1 and 2^60 - 1).
        growth: in [0.05, 1], by default 0.1: an arm's plays in the third or a later epoch, divided by the arm's plays
            before this epoch, unless the noise requires more plays (see above).

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's reward; adjacency: replace one.
        - Sensitivity: A reward adds at most 1 to one arm's total of one epoch. The totals of an epoch have L1
          sensitivity 1 and are released once, each with Laplace(1 / epsilon) noise. The ends of epochs are fixed in
          advance, and the arms that play are determined by earlier releases. So different epochs contain different
          users, and parallel composition applies.
        - Released: `rates` and `sums`, computed from the noisy totals of the first epoch and of all later epochs;
          everything else is post-processing.
        - Private: `totals`.

    Source:
        Turner, Ly & Grünwald (2024), arXiv 2106.02693, for the bets, which they write as likelihood ratios.
        `docs/proofs/pairs.md` explains the bets and proves the test.

    Deviations:
        Turner et al. test one pair. The noise, the tolerance and the union bound over pairs are ours. The noise is a
        multiple of a small step, as in `laplace`; the tests account for this rounding. Logarithms of e-values are sums
        of floats.

    Math:
        Let $n$ be the plays of each arm after the first epoch, $\tilde X$ and $\tilde Y$ the sums of the $J$ noisy
        totals of $x$ and $y$ in these plays, and $s$ the noisy rate of ones of both arms in the first epoch, clipped
        to $[10^{-4}, 1 - 10^{-4}]$. With 16 stakes $v$ and their weights $q_v$, the e-value against $x$ is

        $$
        E = \sum_v q_v \frac{e^{a_v \tilde Y + b_v \tilde X} (1 - v^2 s^2)^n}{(M(a_v) M(b_v))^J}, \quad
        a_v = \ln \frac{1 + v (1 - s)}{1 - v s}, \quad
        b_v = \ln \frac{1 - v (1 - s)}{1 + v s}
        $$

        where $M$ bounds the moment generating function of the noise, $M(a) = 1 / (1 - a^2 / \varepsilon^2)$ times a
        factor for its rounding. Arm $x$ is dropped once

        $$
        E \ge \frac{K - 1}{\beta}
        $$

        for an active arm $y$, where $\beta$ is `failure_prob`; with a tolerance, once $E \ge 2 (K - 1) / \beta$.

    Examples:
        >>> import jax, jaxdp
        >>> bandit = jaxdp.bandits.bernoulli_bandit([0.1, 0.9, 0.5])
        >>> run = jaxdp.simulator(pairwise_elimination_central(num_arms=3), bandit, horizon=100_000, engine="counts")
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> outputs["correct"].tolist(), outputs["censored"].tolist()
        ([True], False)
    """
    num_arms, integer = check_count("num_arms", num_arms, 2), jnp.result_type(int)
    largest, arm_indices = int(jnp.iinfo(integer).max), jnp.arange(num_arms, dtype=jnp.int32)

    def params(
        *,
        epsilon: float,
        failure_prob: float = 0.05,
        tolerance: float = 0.0,
        log_odds_ratio: float | None = None,
        first_look: float | None = None,
        growth: float = 0.1,
    ) -> Params:
        check_probability("failure_prob", failure_prob)
        if check_at_least("tolerance", check_number("tolerance", tolerance), 0.0) >= 1:
            raise ValueError(f"tolerance must be < 1, got {tolerance}")
        budget = leaf_rounded_down("epsilon", check_laplace(epsilon, numbers=num_arms))
        longest = math.ceil(min(64 + 64 / epsilon, largest // 4))  # maximum number of an arm's plays in the first epoch
        if first_look is None:
            pilot, first_look = longest, longest + math.ceil(min(16 + (4 / epsilon) ** 2, largest // 8))
        else:
            first_look = check_count("first_look", first_look, 2, maximum=largest // 2)
            pilot = max(1, min(first_look // 16, longest))
        check_within("growth", check_number("growth", growth), LEAST_GROWTH, 1.0)
        stakes, weights = stakes_and_weights(epsilon, log_odds_ratio)
        tests = (num_arms - 1) * (1 if tolerance == 0 else 2)
        dtype = default_float()
        return Params(
            epsilon=budget,
            ends=ends_of_epochs(pilot, first_look, growth, SPACING / epsilon, largest).astype(integer),
            stakes=stakes.astype(dtype),
            log_weights=np.log(weights).astype(dtype),
            tolerance=scalar_leaf("tolerance", tolerance),
            threshold=scalar_leaf("log((K - 1) / failure_prob)", math.log(tests) - math.log(failure_prob)),
            rounding=scalar_leaf("rounding", 0.0 if math.isinf(epsilon) else 2.0**-15 * max(1.0, 1 / epsilon)),
        )

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one round's reward",
            argument="each reward enters one total, released once by the Laplace mechanism at L1 sensitivity 1",
            numerical_delta=laplace_delta(epsilon),
        )

    def init(key, params: Params) -> State:
        del params
        zeros = jnp.zeros(num_arms, default_float())
        public = Public(
            active=jnp.ones(num_arms, bool),
            epoch=jnp.int32(0),
            played=jnp.zeros((), integer),
            rates=zeros,
            sums=compensated.zero(zeros),
            near=jnp.zeros(num_arms, bool),
            tie_word=own_word(key),
        )
        return State(Private(jnp.zeros(num_arms, integer)), public)

    def size_of(public: Public) -> jax.Array:
        return num_active(public).astype(integer)

    def plays_of_arm(params: Params, public: Public) -> jax.Array:
        """Returns the number of plays of each active arm in the current epoch, [] integer."""
        ends, epoch = jnp.asarray(params.ends), jnp.minimum(public.epoch, NUM_EPOCHS - 1)
        return ends[epoch] - jnp.where(epoch == 0, 0, ends[jnp.maximum(epoch - 1, 0)])

    def length(params: Params, public: Public) -> jax.Array:
        """Returns the number of rounds in the current epoch; the largest integer if the epoch never ends."""
        size, plays = size_of(public), plays_of_arm(params, public)
        is_endless = (size == 1) | (plays > largest // size)
        return jnp.where(is_endless, largest, jnp.where(is_endless, 0, plays) * size)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return nth_true(public.active, public.played % size_of(public))

    def update(key, params: Params, state: State, report) -> State:
        arm, reward = report
        rewards = jnp.where(arm_indices == arm, jnp.clip(reward, 0, 1), 0).astype(integer)
        return advance(key, params, state, rewards, jnp.ones((), integer))

    def advance(key, params: Params, state: State, rewards: jax.Array, rounds: jax.Array) -> State:
        """Advances the state by `rounds` rounds of an epoch with the total rewards `rewards`, [num_arms].

        If the epoch ends with these rounds, the function tests and drops arms.
        """
        public: Public = state.public
        totals = jnp.where(public.played == 0, 0, state.private.totals) + rewards
        after = public._replace(played=public.played + rounds)
        is_over = after.played == length(params, public)

        def release_where_over() -> Public:
            return jax.tree.map(partial(jnp.where, is_over), release(key, params, public, totals), after)

        return State(Private(totals), branch(any_lane(is_over), release_where_over, lambda: after))

    def release(key, params: Params, public: Public, totals: jax.Array) -> Public:
        """Releases the epoch's noisy totals, tests and drops arms, and starts the next epoch."""
        noisy = jnp.where(public.active, laplace(key, totals, params.epsilon, l1_sensitivity=1.0), 0)
        is_first, pilot = public.epoch == 0, jnp.asarray(params.ends)[0]
        public = public._replace(
            epoch=public.epoch + 1,
            played=jnp.zeros_like(public.played),
            rates=jnp.where(is_first, noisy / pilot.astype(noisy.dtype), public.rates),
            sums=compensated.add(public.sums, jnp.where(is_first, 0, noisy)),
        )

        def is_shown(margin: Any) -> jax.Array:
            return log_e_values(params, public, margin) >= params.threshold

        is_pair = public.active[:, None] & public.active[None, :] & (arm_indices[:, None] != arm_indices[None, :])
        active = public.active & ~jnp.any(is_pair & is_shown(jnp.zeros_like(params.tolerance)), axis=1)
        near = active & jnp.all(~is_pair | is_shown(params.tolerance), axis=0)
        return public._replace(active=active, near=near)

    def done(params: Params, public: Public) -> jax.Array:
        del params
        return (num_active(public) == 1) | jnp.any(public.near)

    def recommend(params: Params, public: Public) -> jax.Array:
        del params
        # All candidates have been played equally often in the epochs that have ended.
        candidates = jnp.where(jnp.any(public.near), public.near, public.active)
        sums = jnp.where(candidates, public.sums.total - public.sums.excess, -jnp.inf)
        return ties.largest(sums, ties.ranks(public.tie_word, num_arms))

    algorithm = bulk.Algorithm(num_arms, integer, size_of, length, advance)
    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=reveal_feedback,
        update=update,
        done=done,
        recommend=recommend,
        blocks=(bulk.blocks(algorithm),),
        counts=bulk.counts(algorithm),
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1), recommendation=arms(num_arms)),
        min_horizon=num_arms + 1,
    )


def log_e_values(params: Params, public: Public, margin: Any) -> jax.Array:
    """Returns log e-values against "arm y is worse than arm x by at least `margin`", [num_arms, num_arms] at [x, y]."""
    ends, sums = jnp.asarray(params.ends), public.sums.total - public.sums.excess
    plays = (ends[jnp.minimum(public.epoch, NUM_EPOCHS) - 1] - ends[0]).astype(sums.dtype)
    rates = (public.rates[:, None] + public.rates[None, :]) / 2
    slope_y, slope_x, none = slopes_of(jnp.asarray(params.stakes)[None, None], rates[..., None], margin)
    # The payoff is computed from the difference and the sum of the two totals, to avoid cancellation of large terms.
    lead = (sums[None, :] - sums[:, None])[..., None]
    ones = (sums[None, :] + sums[:, None])[..., None]
    payoff = (lead * (slope_y - slope_x) + ones * (slope_y + slope_x)) / 2 + plays * none
    releases = (public.epoch - 1).astype(sums.dtype)
    logs = payoff - releases * (log_noise(params, slope_y) + log_noise(params, slope_x))
    return logsumexp(logs + jnp.asarray(params.log_weights)[None, None], axis=-1)


def slopes_of(stakes: jax.Array, rates: jax.Array, margin: Any) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Returns three numbers for the log payoff of a stake: (slope of y's total, slope of x's total, constant).

    After n users of each arm, the log payoff is each total times its slope, summed over both arms, plus n times the
    constant. `rates`, [...] float, are the fractions of ones in both arms together. `margin`, [] float, is the mean of
    x minus the mean of y under the hypothesis.
    """
    least = jnp.maximum(LEAST_RATE, margin / 2)
    middle = jnp.clip(rates, least, 1 - least)
    high, low = middle + margin / 2, middle - margin / 2  # means of x and of y under the hypothesis
    both = jnp.log1p(stakes * (margin - stakes * (1 - high) * (1 - low)))
    none = jnp.log1p(stakes * (margin - stakes * high * low))
    only_y = jnp.log1p(stakes * (1 - low)) + jnp.log1p(stakes * high)
    only_x = jnp.log1p(-stakes * (1 - high)) + jnp.log1p(-stakes * low)
    common, opposite = (both - none) / 2, (only_y - only_x) / 2
    return common + opposite, common - opposite, none


def log_noise(params: Params, slope: Any) -> Any:
    """Returns an upper bound on log E[exp(slope N)], where N is Laplace(1 / epsilon) noise rounded down to a grid."""
    return -jnp.log1p(-jnp.square(slope / params.epsilon)) + jnp.maximum(-slope, 0) * params.rounding

"""Successive elimination of arms in epochs, with one private release after each epoch."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.bandits import _successive_elimination_central_bulk as bulk
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
)
from jaxdp.core.central import reveal_feedback
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import noisy_leads
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.mechanisms.some_lanes import in_flagged_lanes
from jaxdp.numerics.lookup import nth_true
from jaxdp.validation import check_choice, check_count, check_positive, check_probability

CONSTANTS = ("tight", "paper")


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        plays: [num_epochs, num_arms + 1] integer >= 1, plays of each active arm in an epoch, indexed by epoch and
            number of active arms; the largest integer means that the epoch never ends.
        margins: [num_epochs, num_arms + 1] float. An active arm is dropped if its noisy total is below the largest one
            by more than the margin. Indexed like `plays`; infinite where `plays` is the largest integer.
    """

    epsilon: Scalar
    plays: np.ndarray
    margins: np.ndarray


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
        best_arm: [] int32, the arm with the largest noisy total in the last epoch that has ended; 0 in the first epoch.
        epoch: [] int32, number of epochs that have ended.
        played: [] integer, rounds played in the current epoch.
    """

    active: jax.Array
    best_arm: jax.Array
    epoch: jax.Array
    played: jax.Array


@factory
def successive_elimination_central(*, num_arms: int, constants: str = "tight") -> Learner:
    r"""Plays active arms in turn, and drops arms with low noisy means after each epoch.

    Epoch k = 1, 2, ... is meant to drop all arms with means at least D = 2^-k below the best mean. Each of the S active
    arms is played R times. Then Laplace(1 / epsilon) noise is added once to each arm's total reward. An arm is dropped
    if its noisy mean is below the largest noisy mean by more than D / 2 ("tight") or 2 h + 2 c ("paper"). Here h bounds
    the difference between an arm's mean reward and its true mean, and c bounds the noise divided by R (see Math). The
    last remaining arm is played in all later rounds.

    Args:
        num_arms: number of arms, >= 2.
        constants: "tight": R solves h + c = D / 4 and is rounded up. "paper": the published R, which is up to 4 times
            as large for the same failure_prob.

    Returns:
        A learner for binary rewards ([] int32, clipped to {0, 1}); its actions are arms ([] int32). It supports blocks
        and counts.

    Raises:
        ValueError: if num_arms < 2, or constants is not one of the names above. The result's `params` raises this error
            if a value is out of range.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1; multiplies R. With the default, the best arm is dropped with
            probability <= failure_prob. With a smaller value, epochs are shorter. Privacy is the same, but this
            guarantee is lost.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's reward; adjacency: replace one.
        - Sensitivity: A reward adds at most 1 to one arm's total of one epoch. The totals of an epoch have L1
          sensitivity 1 and are released once, each with Laplace(1 / epsilon) noise. The ends of epochs are functions of
          earlier releases. So different epochs contain different users, and parallel composition applies.
        - Released: `active` and `best_arm`, which are post-processing of noisy totals.
        - Private: `totals`.

    Source:
        Sajed & Sheffet (2019), DP successive elimination. Let beta = failure_prob. Each mean differs from the true mean
        by more than h with probability at most beta / (4 S k^2), by Hoeffding's inequality. Each total's noise exceeds
        R c in absolute value with probability at most beta / (4 S k^2). So the probability of any such error is at most
        beta / (2 k^2) in epoch k, and less than beta in all epochs together. Without an error, the best arm is never
        dropped, and every arm with a gap above D >= 4 (h + c) is dropped in epoch k.

    Deviations:
        For "tight", R is the smallest number with h + c <= D / 4 (before `confidence_multiplier`), instead of the
        paper's formula. Noisy totals are compared by their differences from the largest one (`noisy_leads`); noise is
        as in `laplace`.

    Math:
        In epoch $k$ each of the $S$ active arms is played $R$ times, and its total $X_i$ is released as

        $$
        \tilde X_i = X_i + Z_i, \quad Z_i \sim \mathrm{Laplace}(1 / \varepsilon)
        $$

        Arm $i$ is dropped if

        $$
        \tilde X_i < \max_j \tilde X_j - 2 R (h + c), \quad h = \sqrt{\frac{\ln(8 S k^2 / \beta)}{2 R}}, \quad
        c = \frac{\ln(4 S k^2 / \beta)}{\varepsilon R}
        $$

        where $\beta$ is `failure_prob` and $D = 2^{-k}$. For "tight", $R$ is the root of $h + c = D / 4$, multiplied
        by `confidence_multiplier` and then rounded up. The margin $2 R (h + c)$ is replaced by $R D / 2$ with the final
        $R$; the two margins are equal at the root. For "paper", where `confidence_multiplier` multiplies the maximum,

        $$
        R = 1 + \lceil \max\Big(
        \frac{32 \ln(8 S k^2 / \beta)}{D^2}, \; \frac{8 \ln(4 S k^2 / \beta)}{\varepsilon D}
        \Big) \rceil
        $$

    Examples:
        >>> import jax, jaxdp
        >>> learner, world = successive_elimination_central(num_arms=2), jaxdp.bandits.bernoulli_bandit([0.9, 0.1])
        >>> run = jaxdp.simulator(learner, world, horizon=10**9, engine="counts")
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["best_arm_plays"][-1] > 10**9 - 1000)
        True
    """
    num_arms, integer = check_count("num_arms", num_arms, 2), jnp.result_type(int)
    is_paper = check_choice("constants", constants, CONSTANTS) == "paper"
    largest = int(jnp.iinfo(integer).max)
    # With confidence_multiplier = 1, the last epoch never ends, because it has at least 8 ln(16) 4^epoch plays of each
    # arm. With a tiny multiplier the last epoch can end. All later epochs then have its number of plays and its margin.
    num_epochs = integer.itemsize * 4

    def round_up(plays: float) -> float:
        return math.ceil(plays) if plays < largest else math.inf

    def length_of(epoch: int, size: int, epsilon: float, failure_prob: float, multiplier: float) -> tuple[float, float]:
        """Returns the number of plays R of each of `size` active arms, and the margin below the largest noisy total."""
        gap, noise_tail = 0.5**epoch, math.log(4 * size * epoch**2) - math.log(failure_prob)
        mean_tail, noise = noise_tail + math.log(2), noise_tail / epsilon  # h = sqrt(mean_tail / (2 R)), c = noise / R
        if is_paper:
            plays = round_up(multiplier * max(32 * mean_tail / gap**2, 8 * noise / gap)) + 1
            return plays, 2 * math.sqrt(mean_tail * plays / 2) + 2 * noise
        # z = 1 / sqrt(R) is the root of sqrt(mean_tail / 2) z + noise z^2 = D / 4, which is h + c.
        root = gap / 2 / (math.sqrt(mean_tail / 2) + math.sqrt(mean_tail / 2 + noise * gap))
        plays = round_up(multiplier / root**2)
        return plays, plays * gap / 2

    def params(*, epsilon: float, failure_prob: float = 0.05, confidence_multiplier: float = 1.0) -> Params:
        check_probability("failure_prob", failure_prob)
        check_positive("confidence_multiplier", confidence_multiplier)
        leaf = leaf_rounded_down("epsilon", check_laplace(epsilon, numbers=num_arms))
        plays = np.full((num_epochs, num_arms + 1), largest, integer)
        margins = np.full(plays.shape, np.inf)
        for epoch in range(num_epochs):
            for size in range(1, num_arms + 1):
                plays_of_arm, margin = length_of(epoch + 1, size, epsilon, failure_prob, confidence_multiplier)
                if plays_of_arm * size < largest:  # the number of rounds in the epoch
                    plays[epoch, size], margins[epoch, size] = int(plays_of_arm), margin
        return Params(epsilon=leaf, plays=plays, margins=margins.astype(default_float()))

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one round's reward",
            argument="each reward enters one total, released once by the Laplace mechanism at L1 sensitivity 1",
            numerical_delta=laplace_delta(epsilon),
        )

    def init(key, params: Params) -> State:
        del key, params
        public = Public(jnp.ones(num_arms, bool), jnp.int32(0), jnp.int32(0), jnp.zeros((), integer))
        return State(Private(jnp.zeros(num_arms, integer)), public)

    def size_of(public: Public) -> jax.Array:
        return jnp.sum(public.active, dtype=integer)

    def of_epoch(table: np.ndarray, public: Public) -> jax.Array:
        return jnp.asarray(table)[jnp.minimum(public.epoch, num_epochs - 1), size_of(public)]

    def length(params: Params, public: Public) -> jax.Array:
        """Returns the number of rounds in the current epoch; the largest integer if the epoch never ends."""
        size, plays_of_arm = size_of(public), of_epoch(params.plays, public)
        is_endless = (size == 1) | (plays_of_arm == largest)
        return jnp.where(is_endless, largest, jnp.where(is_endless, 0, plays_of_arm) * size)  # 0 avoids overflow

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return nth_true(public.active, public.played % size_of(public))

    def update(key, params: Params, state: State, report) -> State:
        arm, reward = report
        is_played = jnp.arange(num_arms, dtype=arm.dtype) == arm
        rewards = jnp.where(is_played, jnp.clip(reward, 0, 1), 0).astype(integer)
        return advance(key, params, state, rewards, jnp.ones((), integer))

    def advance(key, params: Params, state: State, rewards: jax.Array, rounds: jax.Array) -> State:
        """Advances the state by `rounds` rounds of an epoch with the total rewards `rewards`, [num_arms].

        If the epoch ends with these rounds, the function drops arms.
        """
        public: Public = state.public
        totals = jnp.where(public.played == 0, 0, state.private.totals) + rewards
        after = public._replace(played=public.played + rounds)
        is_end = (after.played == length(params, public)) & (size_of(public) > 1)
        margin = of_epoch(params.margins, public)
        after = in_flagged_lanes(is_end, release, after, key, params.epsilon, margin, public, totals)
        return State(Private(totals), after)

    def release(key, epsilon: Scalar, margin: jax.Array, public: Public, totals: jax.Array) -> Public:
        """Drops arms with noisy totals more than `margin` below the largest one, and starts the next epoch."""
        leads = noisy_leads(key, totals, epsilon, l1_sensitivity=1.0, among=public.active)
        remains = -leads <= margin
        best_arm = jnp.argmax(jnp.where(public.active, leads, -jnp.inf)).astype(jnp.int32)
        return Public(public.active & remains, best_arm, public.epoch + 1, jnp.zeros_like(public.played))

    algorithm = bulk.Algorithm(num_arms, integer, size_of, length, advance)
    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=reveal_feedback,
        update=update,
        blocks=(bulk.blocks(algorithm),),
        counts=bulk.counts(algorithm),
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
        best_action=lambda params, public: public.best_arm,
    )

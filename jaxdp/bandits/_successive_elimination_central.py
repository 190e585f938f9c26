"""Elimination of arms in epochs, with one private release an epoch."""

import math
from dataclasses import dataclass
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
    claimed,
    default_float,
    factory,
    scalar_leaf,
)
from jaxdp.mechanisms import noisy_leads
from jaxdp.mechanisms.numerical import laplace_delta
from jaxdp.validation import check_choice, check_count, check_epsilon, check_positive, check_probability

CONSTANTS = ("tight", "paper")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        plays: [num_epochs, num_arms + 1] integer >= 1, how often each epoch plays each of so many active arms; the
            largest integer stands for an epoch that is too long to end.
        margins: [num_epochs, num_arms + 1] float, by how much an arm's noisy total may lie behind the largest.
    """

    epsilon: Scalar
    plays: np.ndarray
    margins: np.ndarray


class Private(NamedTuple):
    """What the curator knows.

    Attributes:
        totals: [num_arms] integer, rewards of this epoch. They are counted from zero again in an epoch's first round.
    """

    totals: jax.Array


class Public(NamedTuple):
    """What has been released, and what follows from it.

    Attributes:
        active: [num_arms] bool, the arms that are left.
        epoch: [] int32, epochs that have ended.
        played: [] integer, rounds of this epoch played.
    """

    active: jax.Array
    epoch: jax.Array
    played: jax.Array


@factory
def successive_elimination_central(*, num_arms: int, constants: str = "tight") -> Learner:
    """Plays active arms in turn; after each epoch, arms with a low noisy mean are dropped.

    Epoch e = 1, 2, ... looks for arms whose mean is D = 2^-e below the best. Each of the S active arms is played R
    times; then its total of rewards gets Laplace(1 / epsilon) noise, once, and an arm whose noisy mean is more than
    2 h + 2 c below the largest one is dropped. With b the failure probability

        h = sqrt(ln(8 S e^2 / b) / (2 R)),  c = ln(4 S e^2 / b) / (epsilon R).

    An arm that is left alone is played for ever.

    Args:
        num_arms: number of arms, >= 2.
        constants: "tight": R is the root of h + c = D / 4, rounded up; "paper": R = 1 + max(32 ln(8 S e^2 / b) / D^2,
            8 ln(4 S e^2 / b) / (epsilon D)), rounded up, which is up to 4 times as much for the same b.

    Returns:
        A learner for binary rewards ([] int32, clipped to {0, 1}); its actions are arms ([] int32), with blocks and
        counts.

    Raises:
        ValueError: if num_arms < 2 or constants has another name.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1, which multiplies R. With 1 the best arm is dropped with probability <=
            failure_prob. Less is more daring, as private, and without that guarantee.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's reward; adjacency: replace one.
        - Sensitivity: A reward enters one arm's total of one epoch, by at most 1; the totals of an epoch, of L1
          sensitivity 1, are released once, with Laplace(1 / epsilon) noise each. When epochs end follows from earlier
          releases, so that epochs concern different users and compose in parallel.
        - Released: `active`, post-processing of noisy totals.
        - Private: `totals`.

    Source:
        Sajed & Sheffet (2019), DP successive elimination. Hoeffding's inequality leaves each mean within h of the true
        one but for probability b / (4 S e^2), and noise within R c likewise: b / (2 e^2) over the arms of an epoch,
        less than b over all epochs. Then the best arm is never dropped, and an arm whose gap exceeds 4 (h + c) = D is,
        in epoch e.

    Deviations:
        R by the root. Noisy totals are compared by their leads (`noisy_leads`); floating-point
        noise, as in `laplace`.

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
    num_epochs = integer.itemsize * 4  # the last one would be too long to end: 32 x 4^e plays

    def rounded_up(plays: float) -> float:
        return math.ceil(plays) if plays < largest else math.inf

    def length_of(epoch: int, size: int, epsilon: float, failure_prob: float, multiplier: float) -> tuple[float, float]:
        """(R, by how much a noisy total may lie behind the largest)."""
        gap, noise_tail = 0.5**epoch, math.log(4 * size * epoch**2) - math.log(failure_prob)
        mean_tail, noise = noise_tail + math.log(2), noise_tail / epsilon  # h = sqrt(mean_tail / (2 R)), c = noise / R
        if is_paper:
            plays = rounded_up(multiplier * max(32 * mean_tail / gap**2, 8 * noise / gap)) + 1
            return plays, 2 * math.sqrt(mean_tail * plays / 2) + 2 * noise
        # z = 1 / sqrt(R) is the root of sqrt(mean_tail / 2) z + noise z^2 = D / 4, which is h + c.
        root = gap / 2 / (math.sqrt(mean_tail / 2) + math.sqrt(mean_tail / 2 + noise * gap))
        plays = rounded_up(multiplier / root**2)
        return plays, plays * gap / 2

    def params(*, epsilon: float, failure_prob: float = 0.05, confidence_multiplier: float = 1.0) -> Params:
        check_probability("failure_prob", failure_prob)
        check_positive("confidence_multiplier", confidence_multiplier)
        leaf = scalar_leaf("epsilon", check_epsilon(epsilon))
        plays = np.full((num_epochs, num_arms + 1), largest, integer)
        margins = np.full(plays.shape, np.inf)
        for epoch in range(num_epochs):
            for size in range(1, num_arms + 1):
                each, margin = length_of(epoch + 1, size, epsilon, failure_prob, confidence_multiplier)
                if each * size < largest:  # all of the epoch's rounds
                    plays[epoch, size], margins[epoch, size] = int(each), margin
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
        public = Public(jnp.ones(num_arms, bool), jnp.int32(0), jnp.zeros((), integer))
        return State(Private(jnp.zeros(num_arms, integer)), public)

    def size_of(public: Public) -> jax.Array:
        return jnp.sum(public.active, dtype=integer)

    def of_epoch(table: np.ndarray, public: Public) -> jax.Array:
        return jnp.asarray(table)[jnp.minimum(public.epoch, num_epochs - 1), size_of(public)]

    def length(params: Params, public: Public) -> jax.Array:
        """Rounds of this epoch; a lone arm plays on for ever."""
        size, each = size_of(public), of_epoch(params.plays, public)
        is_endless = (size == 1) | (each == largest)
        return jnp.where(is_endless, largest, jnp.where(is_endless, 0, each) * size)

    def in_turn(public: Public, played: jax.Array) -> jax.Array:
        """The arms of these rounds of the epoch."""
        order = jnp.argsort(~public.active, stable=True).astype(jnp.int32)  # active ones first
        return order[played % size_of(public)]

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return in_turn(public, public.played)

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del key, params, public, context
        return action, feedback  # central model: the curator sees the play and its reward

    def update(key, params: Params, state: State, report) -> State:
        arm, paid = report
        mine = jnp.arange(num_arms, dtype=arm.dtype) == arm
        paid = jnp.where(mine, jnp.clip(paid, 0, 1), 0).astype(integer)
        return advance(key, params, state, paid, jnp.ones((), integer))

    def advance(key, params: Params, state: State, paid: jax.Array, rounds: jax.Array) -> State:
        """Goes on by some rounds of the epoch, in which arms paid so much; drops arms if it ends with the last one."""
        public: Public = state.public
        totals = jnp.where(public.played == 0, 0, state.private.totals) + paid
        after = public._replace(played=public.played + rounds)
        after = jax.lax.cond(
            (after.played == length(params, public)) & (size_of(public) > 1),
            lambda: release(key, params, public, totals),
            lambda: after,
        )
        return State(Private(totals), after)

    def release(key, params: Params, public: Public, totals: jax.Array) -> Public:
        """The next epoch, without the arms whose noisy totals lie too far behind."""
        leads = noisy_leads(key, totals, params.epsilon, l1_sensitivity=1.0, among=public.active)
        kept = -leads <= of_epoch(params.margins, public)
        return Public(public.active & kept, public.epoch + 1, jnp.zeros_like(public.played))

    many = bulk.Algorithm(num_arms, integer, size_of, length, in_turn, advance)
    return Learner(
        params=params,
        guarantee=claimed(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=(bulk.blocks(many),),
        counts=bulk.counts(many),
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
    )

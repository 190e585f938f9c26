"""Best-arm identification with a fixed number of rounds and one private selection at the end."""

from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.bandits import _explore_then_commit_bulk as bulk
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
    leaf_rounded_down,
)
from jaxdp.core.central import reveal_feedback
from jaxdp.core.params import pytree_dataclass
from jaxdp.mechanisms import noisy_max
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.numerical import selection_delta
from jaxdp.validation import check_count, check_epsilon


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
    """

    epsilon: Scalar


class Private(NamedTuple):
    """The curator's private state.

    Attributes:
        totals: [num_arms] integer, the sums of each arm's rewards.
    """

    totals: jax.Array


class Public(NamedTuple):
    """Public state: released values.

    Attributes:
        round: [] integer, rounds played.
        best_arm: [] int32, the recommendation; before the last round, a uniformly random arm that does not depend on
            data.
    """

    round: jax.Array
    best_arm: jax.Array


@factory
def noisy_argmax(*, num_arms: int, num_rounds: int) -> Learner:
    r"""Plays every arm equally often, then recommends the arm with the largest noisy total of rewards, and stops.

    Exponential noise of mean 1 / epsilon is added to each total once. Among equal noisy totals, each arm is equally
    likely. Before the last round the recommendation is a uniformly random arm.

    Args:
        num_arms: number of arms K, >= 2.
        num_rounds: total number of rounds, a positive multiple of num_arms.

    Returns:
        A learner for binary rewards ([] int32, clipped to {0, 1}) that plays and recommends arms ([] int32). It
        supports blocks and counts, and stops after num_rounds rounds.

    Raises:
        ValueError: if num_arms < 2, or num_rounds is not a positive multiple of num_arms or exceeds the largest
            integer. The result's `params` raises this error if epsilon is not > 0, or is finite but outside the range
            of JAX's default float type.

    Values:
        epsilon: the privacy budget, > 0.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's reward; adjacency: replace one.
        - Sensitivity: Replacing a reward changes one arm's total, by at most 1. Fix the noise of all arms except arm i.
          Arm i is selected if its noise exceeds a threshold: the largest other noisy total minus the total of arm i.
          The threshold changes by at most 1. (It changes by at most 2 if several scores may change in opposite
          directions.) Exponential noise of mean 1 / epsilon exceeds t with probability min(1, exp(-epsilon t)), so this
          probability changes by a factor of at most exp(epsilon).
        - Released: `best_arm`.
        - Private: `totals`.

    Source:
        Report noisy max, Dwork & Roth (2014), Claim 3.9; with exponential noise it is the permute-and-flip mechanism of
        McKenna & Sheldon (2020) and Ding et al. (2021). Here half of their noise suffices, because only one score
        changes.

    Deviations:
        Noise is drawn and added in 64-bit arithmetic, as in `noisy_max`.

    Math:
        With $X_i$ the total of arm $i$ after $n$ = num_rounds / $K$ plays, the recommendation is

        $$
        \operatorname{argmax}_i ( X_i + Z_i ), \quad P(Z_i > z) = e^{-\varepsilon z}, \; z \ge 0
        $$

        If all other means are at least $D$ below the best one, the probability of a wrong recommendation is at most

        $$
        (K - 1) \Big( e^{-n D^2 / 4} + \frac{1}{2} e^{-\varepsilon n D / 2} \Big)
        $$

        since an arm is selected in place of the best arm only if the best total leads by less than $n D / 2$
        (Hoeffding's inequality), or the difference of the two noises, which is Laplace$(1 / \varepsilon)$, exceeds
        $n D / 2$.

    Examples:
        >>> import jax, jaxdp
        >>> bandit = jaxdp.bandits.bernoulli_bandit([0.1, 0.9, 0.5])
        >>> run = jaxdp.simulator(noisy_argmax(num_arms=3, num_rounds=300), bandit, horizon=300)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> outputs["correct"].tolist(), outputs["rounds"].tolist()
        ([True], 300)
    """
    num_arms, num_rounds = check_count("num_arms", num_arms, 2), check_count("num_rounds", num_rounds)
    if num_rounds % num_arms:
        raise ValueError(f"num_rounds must be a positive multiple of num_arms={num_arms}, got {num_rounds}")
    integer = jnp.result_type(int)

    def params(*, epsilon: float) -> Params:
        return Params(epsilon=leaf_rounded_down("epsilon", check_epsilon(epsilon)))

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one round's reward",
            argument="each reward moves one total, by at most 1; one arm is selected privately by all totals",
            numerical_delta=selection_delta(num_arms, epsilon),
        )

    def init(key, params: Params) -> State:
        del params
        best_arm = jax.random.randint(key, (), 0, num_arms, jnp.int32)
        return State(Private(jnp.zeros(num_arms, integer)), Public(jnp.zeros((), integer), best_arm))

    def arm(round_: jax.Array, best_arm: jax.Array) -> jax.Array:
        del best_arm
        return (round_ % num_arms).astype(jnp.int32)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return arm(public.round, public.best_arm)

    def update(key, params: Params, state: State, report) -> State:
        action, reward = report
        is_played = jnp.arange(num_arms, dtype=action.dtype) == action
        totals = add(state, jnp.where(is_played, to_integers(params, reward), 0))
        return advance(key, params, state, totals, jnp.ones_like(state.public.round))

    def to_integers(params: Params, rewards: jax.Array) -> jax.Array:
        del params
        return jnp.clip(rewards, 0, 1).astype(integer)

    def add(state: State, more: jax.Array) -> jax.Array:
        return state.private.totals + jnp.where(state.public.round < num_rounds, more, 0)

    def advance(key, params: Params, state: State, totals: jax.Array, played: jax.Array) -> State:
        """Advances the state by `played` rounds to `totals`; selects an arm if these rounds include the last one."""
        public: Public = state.public
        round_ = public.round + played
        best_arm = branch(
            round_ == num_rounds,
            lambda: noisy_max(key, totals, params.epsilon, sensitivity=0.5),  # half, because only one total changes
            lambda: public.best_arm,
        )
        return State(Private(totals), Public(round_, best_arm))

    def done(params: Params, public: Public) -> jax.Array:
        del params
        return public.round >= num_rounds

    def recommend(params: Params, public: Public) -> jax.Array:
        del params
        return public.best_arm

    algorithm = bulk.Algorithm(num_arms, num_rounds, arm, to_integers, add, advance)
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
        min_horizon=num_rounds,
    )

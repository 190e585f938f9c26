"""UCB1 in the central model, with upper confidence bounds computed from noisy totals of rewards."""

import math
from typing import Any

import jax
import jax.numpy as jnp

from jaxdp.bandits._arm_blocks import ArmBlocks, Public
from jaxdp.bandits._means_kernels import largest_bound
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
from jaxdp.mechanisms import tree_counter
from jaxdp.mechanisms.continual_counting.arity import best_arity, num_digits
from jaxdp.mechanisms.least_budgets import check_laplace
from jaxdp.mechanisms.numerical import laplace_delta, nodes_delta
from jaxdp.random import ties
from jaxdp.validation import check_choice, check_count, check_horizon, check_positive

RELEASES = ("blocks", "tree")
LARGEST_TAIL = 80.0  # maximum of x = exploration_rate ln t, so that the failure probability exp(-x) is a normal float32


@pytree_dataclass
class Params:
    """The learner's parameters, which JAX traces.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        exploration_rate: [] float > 0. A confidence bound has one term for noise and one for sampling error. After t
            rounds, each term is too small with probability at most t^-exploration_rate.
        counter: parameters of the counters with release="tree"; () with "blocks".
    """

    epsilon: Scalar
    exploration_rate: Scalar
    counter: Any


@factory
def ucb_central(*, num_arms: int, release: str = "blocks", horizon: int | None = None) -> Learner:
    r"""Plays the arm with the largest upper confidence bound on its mean, computed from noisy totals of rewards.

    An arm's bound is S / n + sqrt(x / (2 n)) + q / n, where S is the noisy total of n rewards, and x = exploration_rate
    ln t after t rounds. The noise in S is at most q with probability at least 1 - t^-exploration_rate. The sampling
    error of the mean is at most sqrt(x / (2 n)), with at least the same probability. Arms that have not been played are
    played first, one after another. Among equal bounds, each arm is equally likely.

    * "blocks": a block ends when its arm has 1, 2, 4, 8, ... plays in total. Then the arm's total since its last
      release is released with Laplace(1 / epsilon) noise, and the next arm is chosen. S is the sum of the arm's J noisy
      totals. For every l in (0, 1), Chernoff's bound on the sum of their noise is (x - J ln(1 - l^2)) / (epsilon l).
      The choice l^2 = x / (x + J) gives q = (x + J ln(1 + x / J)) sqrt(1 + J / x) / epsilon, within a few percent of
      the smallest bound.
    * "tree": each arm has a continual counter for `horizon` entries. It receives an entry in each round in which the
      arm is played. All bounds are recomputed in every round. This design is the simplest, but the noise in S grows
      with the horizon, even for arms that are seldom played.

    Args:
        num_arms: number of arms, >= 2.
        release: "blocks" or "tree".
        horizon: rounds T, >= 1. Required for "tree"; must be None for "blocks".

    Returns:
        A learner for binary rewards ([] int32, clipped to {0, 1}); its actions are arms ([] int32). With "blocks" the
        learner can also be simulated by blocks or counts.

    Raises:
        ValueError: if num_arms < 2, release is not one of the names above, or horizon is < 1 or not below the largest
            integer; or if horizon is missing for "tree", or given for "blocks". The result's `params` raises this error
            if a value is out of range or, for "tree", if horizon^-exploration_rate is below exp(-80).

    Values:
        epsilon: the privacy budget, > 0.
        exploration_rate: > 0 and finite, by default 4, as in UCB1.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's reward; adjacency: replace one.
        - Sensitivity, "blocks": A reward adds at most 1 to one total of one arm, and each total is released once with
          Laplace(1 / epsilon) noise. The arms and the ends of blocks are functions of earlier releases. So different
          blocks contain different users, and parallel composition applies.
        - Sensitivity, "tree": A reward is one entry of one arm's counter, and the counter has noise for entries of L1
          sensitivity 1. Earlier releases determine which counter receives an entry.
        - Released: `sums`.
        - Private: `total`, the counters' states.

    Source:
        Auer, Cesa-Bianchi & Fischer (2002), UCB1; at epsilon = inf, "tree" is this algorithm. Mishra & Thakurta (2015)
        for "tree"; Azize & Basu (2022) for doubling blocks.

    Deviations:
        S is the sum over all blocks of an arm, not only over the last block. It contains J noise variates, but the
        sampling variance of S / n is half of the sampling variance of the last block's mean. For "tree", q is the exact
        two-sided Chernoff bound of the counter's noise. The noise is a multiple of a small step, as in `laplace`.

    Math:
        After $t$ rounds, with "blocks" if a block has just ended, the learner chooses the arm with the largest bound

        $$
        \frac{\tilde S_i}{n_i} + \sqrt{\frac{x}{2 n_i}} + \frac{q_i}{n_i}, \quad x = \alpha \ln t
        $$

        where $\alpha$ is `exploration_rate`, and $\tilde S_i$ the noisy total of $n_i$ rewards. With "blocks" this
        total is a sum of $J_i$ totals with noise $\mathrm{Lap}(1 / \varepsilon)$ each. With probability at most
        $t^{-\alpha}$ the sum of the $J_i$ noise variates exceeds

        $$
        q_i = \frac{1}{\varepsilon} \Big( x + J_i \ln\Big(1 + \frac{x}{J_i}\Big) \Big) \sqrt{1 + \frac{J_i}{x}}
        $$

    Examples:
        >>> import jax, jaxdp
        >>> run = jaxdp.simulator(ucb_central(num_arms=2), jaxdp.bandits.bernoulli_bandit([0.9, 0.1]), horizon=10**6)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=1.0))
        >>> bool(outputs["pseudo_regret"][-1] < 1000)
        True
    """
    num_arms, integer = check_count("num_arms", num_arms, 2), jnp.result_type(int)
    is_tree = check_choice("release", release, RELEASES) == "tree"
    if is_tree != (horizon is not None):
        raise ValueError(f"horizon must be given for release='tree', and only then, got {horizon} for {release!r}")
    rounds = None if horizon is None else check_horizon(horizon, spare=1)
    counter = None if rounds is None else tree_counter(horizon=rounds)
    levels = 0 if rounds is None else num_digits(rounds, best_arity(rounds))

    def params(*, epsilon: float, exploration_rate: float = 4.0) -> Params:
        budget = leaf_rounded_down("epsilon", check_laplace(epsilon))
        rate = scalar_leaf("exploration_rate", check_positive("exploration_rate", exploration_rate))
        if rounds is not None and not exploration_rate * math.log(rounds) <= LARGEST_TAIL:
            max_rate = LARGEST_TAIL / math.log(rounds)
            raise ValueError(
                f"exploration_rate must be at most {max_rate:.4g} for a horizon of {rounds}, got {exploration_rate}"
            )
        return Params(
            epsilon=budget,
            exploration_rate=rate,
            counter=() if counter is None else counter.params(epsilon=epsilon),
        )

    def claim(epsilon: float) -> Guarantee:
        how = "is an entry of one continual counter" if is_tree else "enters one total, released once by Laplace noise"
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit="one round's reward",
            argument=f"each reward {how}, at L1 sensitivity 1",
            numerical_delta=laplace_delta(epsilon) if counter is None else nodes_delta(epsilon, levels),
        )

    def init_tree(key, params: Params) -> State:
        assert counter is not None
        plays, sums = jnp.zeros(num_arms, integer), jnp.zeros(num_arms, default_float())
        public = Public(plays[0], plays, sums, jnp.int32(0), plays[0])
        return State(counter.init(key, params.counter, (num_arms,), clocks=(num_arms,)), public)

    def update_tree(key, params: Params, state: State, report) -> State:
        assert counter is not None
        public, (arm, reward) = state.public, report
        is_played = jnp.arange(num_arms, dtype=arm.dtype) == arm
        entry = jnp.where(is_played, jnp.clip(reward, 0, 1), 0).astype(integer)
        private = counter.feed(key, params.counter, state.private, entry, is_played)
        plays, sums = public.plays + is_played.astype(integer), counter.read(params.counter, private)
        next_arm = best(key, params, public.round + 1, plays, sums)
        return State(private, Public(public.round + 1, plays, sums, next_arm, public.played))

    def best(key, params: Params, round_: jax.Array, plays: jax.Array, sums: jax.Array) -> jax.Array:
        """Returns the arm with the largest bound after `round_` rounds, [] int32; `sums` are the noisy totals S."""
        # `tail` is x: each term of a bound fails with probability at most exp(-x). `noise` is q, which bounds the noise
        # in S. `blocks` is J, the number of noisy totals in S.
        float_ = sums.dtype
        # After round 1, ln 2 replaces ln 1 = 0, because the noise bound divides by x. This has no effect, because an
        # arm without plays is played next.
        tail = params.exploration_rate * jnp.log(jnp.maximum(round_, 2).astype(float_))
        inverse = 1 / jnp.maximum(plays, 1).astype(float_)  # 1 / n
        if counter is None:
            blocks = num_blocks(plays).astype(float_)
            noise = (tail + blocks * jnp.log1p(tail / blocks)) * jnp.sqrt(1 + blocks / tail) / params.epsilon
        else:
            noise = counter.radius(params.counter, jnp.maximum(plays, 1), jnp.exp(-tail))
        bounds = sums * inverse + jnp.sqrt(tail * inverse / 2) + noise * inverse
        return largest_bound(jnp.where(plays > 0, bounds, jnp.inf), ties.word_beside(key))

    def num_blocks(plays: jax.Array) -> jax.Array:
        """Returns the number of an arm's blocks, which end after 1, 2, 4, 8, ... plays; at least 1."""
        return (jnp.iinfo(integer).bits - jax.lax.clz(jnp.maximum(plays, 1))).astype(integer)

    def best_action(params: Params, public: Public) -> jax.Array:
        del params
        plays = jnp.maximum(public.plays, 1).astype(public.sums.dtype)
        return jnp.argmax(jnp.where(public.plays > 0, public.sums / plays, -jnp.inf)).astype(jnp.int32)

    blocks = ArmBlocks(num_arms, choose=best, growth=lambda params: 1.0)
    if not is_tree:
        return blocks.learner(params, guarantee_for(params, claim))
    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init_tree,
        act=blocks.act,
        privatize=reveal_feedback,
        update=update_tree,
        horizon=rounds,
        interface=Interface(arms(num_arms), Space("integers", (), 0, 1)),
        best_action=best_action,
    )

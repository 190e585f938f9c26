"""Limited updates: each block of rounds plays the (noisy) best expert of the previous block, which is half as long."""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Guarantee, Learner, Scalar, State, factory, guarantee_for, leaf_rounded_down
from jaxdp.core.params import pytree_dataclass
from jaxdp.experts import _limited_updates_bulk as bulk
from jaxdp.experts._losses import UNIT, clip_losses, losses_interface, units_of
from jaxdp.mechanisms import noisy_min
from jaxdp.mechanisms.branches import branch
from jaxdp.mechanisms.numerical import selection_delta
from jaxdp.numerics import fixed_point
from jaxdp.numerics.kernels import any_lane, lanes_last
from jaxdp.validation import check_choice, check_count, check_epsilon

NOISES = ("exponential", "gumbel", "laplace")
LOSSES = ("bounded", "binary")


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
        totals: [num_experts] sums of losses in the current block of rounds: a `fixed_point.Sum`; for binary losses
            int32 (int64 in 64-bit mode).
    """

    totals: Any


class Public(NamedTuple):
    """The released state.

    Attributes:
        round: [] integer, rounds played.
        expert: [] int32, the current expert.
    """

    round: jax.Array
    expert: jax.Array


@factory
def limited_updates(*, num_experts: int, noise: str = "exponential", losses: str = "bounded") -> Learner:
    r"""Plays, in rounds 2^k to 2^(k+1) - 1, the expert with the smallest noisy loss in rounds 2^(k-1) to 2^k - 1.

    Rounds are numbered from 1. Round 1 plays a uniformly random expert. Among equal noisy totals, each expert is
    equally likely. The learner does not need to know the horizon. The rounds in which the expert may change are fixed
    in advance.

    Args:
        num_experts: number of experts N, >= 2.
        noise: the noise of the selection, as for `jaxdp.mechanisms.noisy_min`: "exponential" (permute-and-flip),
            "gumbel" (the exponential mechanism) or "laplace" (as in the paper).
        losses: "bounded" ([num_experts] float, clipped to [0, 1]; NaN counts as 0) or "binary" (also rounded to 0 or
            1).

    Returns:
        A learner for losses ([num_experts] float in [0, 1]); its actions are experts ([] int32). The learner supports
        blocks. For binary losses it also supports counts, which use totals of losses instead of single rounds.

    Raises:
        ValueError: if num_experts < 2, or noise or losses is not one of the names above. The result's `params` raises
            this error if epsilon is not > 0.

    Values:
        epsilon: the privacy budget, > 0.

    Privacy:
        - Claim: epsilon-DP in the central model.
        - Unit: one round's loss vector; adjacency: replace one.
        - A loss vector enters the totals of one block, from which one expert is selected privately once. Each total
          changes by at most 1, and different totals may change in opposite directions. So the selection is calibrated
          to sensitivity 1 without monotonicity.
        - Released: the expert of each block.
        - Private: `totals`.

    Source:
        "Tracking the Best Expert Privately" (Asi, Raman & Saha, 2025), Algorithm 1 and Theorem 3.1.

    Deviations:
        * The expert with the smallest noisy total is selected. The paper has the arg max of losses in line 4, and the
          arg min in the proof.
        * By default the noise is one-sided exponential instead of Laplace, with the paper's scale 2 / epsilon. This
          selection is never worse than the exponential mechanism.
        * Theorem 3.1 omits a factor log T of the paper's Lemma 3.3: 16 log(N T / failure_prob) log(T) / epsilon.
        * Bounded losses are rounded to multiples of 2^-20, and then summed and compared as integers. Noise is drawn as
          in `noisy_min`.

    Math:
        Rounds $2^k$ to $2^{k+1} - 1$ play

        $$
        \operatorname{argmin}_i \Big( \sum_{t = 2^{k-1}}^{2^k - 1} \ell_{t,i} + Z_i \Big)
        $$

        with noise $Z_i$ for a private selection of sensitivity 1 at the budget $\varepsilon$.

    Examples:
        >>> import math, jaxdp
        >>> learner = limited_updates(num_experts=3)
        >>> world = jaxdp.experts.stochastic_losses([0.5, 0.3, 0.5])
        >>> run = jaxdp.simulator(learner, world, horizon=2000)
        >>> outputs = run(jax.random.key(0), run.params(epsilon=math.inf))
        >>> outputs["pseudo_regret"].tolist()[-1] < 20
        True
    """
    num_experts = check_count("num_experts", num_experts, 2)
    check_choice("noise", noise, NOISES)
    binary = check_choice("losses", losses, LOSSES) == "binary"

    def params(*, epsilon: float) -> Params:
        return Params(epsilon=leaf_rounded_down("epsilon", check_epsilon(epsilon)))

    def claim(epsilon: float) -> Guarantee:
        return Guarantee.pure(
            epsilon,
            trust_model="central",
            privacy_unit=UNIT,
            argument="each loss vector is in the totals of one block, from which one expert is selected privately",
            numerical_delta=selection_delta(num_experts, epsilon),
        )

    def init(key, params: Params) -> State:
        del params
        integer = jnp.result_type(int)
        expert = jax.random.randint(key, (), 0, num_experts, jnp.int32)
        totals = jnp.zeros(num_experts, integer) if binary else fixed_point.zero(num_experts)
        return State(Private(totals), Public(jnp.zeros((), integer), expert))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del key, params, context
        return public.expert

    def privatize(key, params: Params, public: Public, context: None, action, feedback) -> jax.Array:
        del key, params, public, context, action
        # Central model: the curator sees the losses themselves.
        return jnp.round(clip_losses(feedback)).astype(jnp.result_type(int)) if binary else units_of(feedback)

    steps = algorithm(num_experts=num_experts, noise=noise, binary=binary)

    def update(key, params: Params, state: State, report) -> State:
        return steps.advance(lambda: key, params, state, steps.add(state, report), jnp.ones_like(state.public.round))

    return Learner(
        params=params,
        guarantee=guarantee_for(params, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        blocks=bulk.blocks(steps),
        counts=bulk.counts(steps) if binary else None,
        interface=losses_interface(num_experts),
    )


def algorithm(*, num_experts: int, noise: str, binary: bool) -> bulk.Algorithm:
    """Returns the functions that single rounds, blocks and counts of the learner share."""

    def add(state: State, losses: jax.Array) -> Any:
        totals, first = state.private.totals, begins_block(state.public.round)
        if binary:
            return lanes_last(jnp.where(first, 0, totals) + losses)
        return fixed_point.add(totals, losses, restart=first)

    def advance(key: Callable[[], jax.Array], params: Params, state: State, totals: Any, played: jax.Array) -> State:
        """Advances by `played` rounds of one block; selects an expert if the next round begins a new block."""
        round_, expert = state.public.round + played, state.public.expert
        due = begins_block(round_)

        def release() -> jax.Array:
            return jnp.where(due, noisy_min(key(), totals, params.epsilon, noise=noise), expert)

        expert = branch(any_lane(due), release, lambda: expert)
        return State(Private(totals), Public(round_, expert))

    return bulk.Algorithm(num_experts, add, advance, rounds_left)


def begins_block(round_: jax.Array) -> jax.Array:
    """Returns whether round `round_` + 1, numbered from 1, begins a block: whether its number is a power of two."""
    following = round_ + 1
    return (following & (following - 1)) == 0


def rounds_left(round_: jax.Array) -> jax.Array:
    """Returns how many rounds are left, after `round_` rounds, in the block that contains the next round, >= 1."""
    following = round_ + 1
    first = highest_power(following)
    return first - (following - first)  # 2 * first may overflow


def highest_power(number: jax.Array) -> jax.Array:
    """Returns the largest power of two that is at most `number`; `number` must be >= 1."""
    bits = jnp.iinfo(number.dtype).bits
    return jnp.left_shift(jnp.ones_like(number), bits - 1 - jax.lax.clz(number))

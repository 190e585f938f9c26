"""Relative upper confidence bounds, on reports that each user randomizes."""

import itertools
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Interface, Learner, Scalar, Space, State, claimed, factory, pairs, scalar_leaf
from jaxdp.dueling.reports import local_claim, randomized_outcome, tally_report
from jaxdp.kernels import combined, lanes_last, line_parts, own_kernel, parts
from jaxdp.random.choice import inline_index_at
from jaxdp.random.threefry import two_uniforms
from jaxdp.validation import check_above, check_epsilon, check_num_arms, check_number


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        exploration_rate: [] float > 1/2, the factor of ln t under the root.
    """

    epsilon: Scalar
    exploration_rate: Scalar


class Public(NamedTuple):
    """What has been reported, and what follows from it.

    Attributes:
        round: [] integer, rounds played.
        wins: [num_arms, num_arms] integer, how often the row's arm is reported to have won against the column's.
        hypothesis: [] int32, the arm that is taken for the best; -1 for none.
    """

    round: jax.Array
    wins: jax.Array
    hypothesis: jax.Array


@factory
def rucb(*, num_arms: int) -> Learner:
    """An arm that may beat all others, against the one that may beat it most easily (RUCB).

    In round t, with N duels of i and j so far, the upper bound of P[i, j] is the debiased share of wins plus
    c sqrt(exploration_rate ln t / N), c = (e^epsilon + 1) / (e^epsilon - 1); it is 2 where there was no duel, and 1/2
    for i = j. The left arm is drawn among champions, whose bounds are all at least 1/2: the hypothesis, the latest
    arm that was the only champion and has been one since, half of the time. (All arms, if there is no champion.) The
    right arm is the one with the largest bound against the left one, another than the left one if there is a tie.

    Values: `epsilon`, the privacy budget, > 0; `exploration_rate`, > 1/2, by default 0.51.

    Args:
        num_arms: number of arms, >= 2.

    Returns:
        A learner whose actions are pairs of arms ([2] int32: left, right). Feedback is [] int32, 1 if the left arm
        wins, clipped to {0, 1}.

    Raises:
        ValueError: if num_arms < 2 or all pairs are more than integers count.

    Privacy: epsilon-DP in the local model; unit: one duel's outcome; adjacency: replace one. An outcome leaves the
        user's device once, by randomized response; everything else is post-processing. Private leaves: none. Released:
        all reports.
    Source: Zoghi, Whiteson, Munos & de Rijke (2014), Algorithm 1, to which it is equal at epsilon = inf; on privatized
        responses as in "Optimal Rates for Private Stochastic Dueling Bandits" (2025).
    Deviations: the common factor c is divided out of all bounds less 1/2, which changes no decision.
    """
    num_arms = check_num_arms(num_arms)
    every = parts(jnp.arange(num_arms, dtype=jnp.int32))
    is_short = len(every) > 1

    def params(*, epsilon: float, exploration_rate: float = 0.51) -> Params:
        check_number("exploration_rate", check_above("exploration_rate", exploration_rate, 0.5))
        return Params(
            epsilon=scalar_leaf("epsilon", check_epsilon(epsilon)),
            exploration_rate=scalar_leaf("exploration_rate", exploration_rate),
        )

    def init(key, params: Params) -> State:
        del key, params
        none = jnp.zeros((num_arms, num_arms), jnp.result_type(int))
        return State((), Public(none[0, 0], none, jnp.int32(-1)))

    def spread(params: Params, public: Public) -> jax.Array:
        return params.exploration_rate * jnp.log((public.round + 1).astype(jnp.result_type(float)))

    def champions_of(wins: jax.Array, spread: jax.Array) -> jax.Array:
        """Arms that by their bounds beat every other: [] uint32, a bit for each; of many arms [num_arms] bool.

        The bound is >= 1/2 if lead / (2 N) >= -sqrt(spread / N).
        """
        wins = lanes_last(wins)
        if not is_short:
            lead, duels = ((wins + sign * wins.T).astype(spread.dtype) for sign in (-1, 1))
            return jnp.all((lead >= 0) | (lead * lead <= 4 * spread * duels), axis=1)
        champions = [jnp.asarray(True)] * num_arms
        for i, j in itertools.combinations(range(num_arms), 2):
            # Differences of integers: in float32 large counts would have lost them.
            lead, duels = ((wins[i, j] + sign * wins[j, i]).astype(spread.dtype) for sign in (-1, 1))
            is_open = lead * lead <= 4 * spread * duels
            champions[i] &= (lead >= 0) | is_open
            champions[j] &= (lead <= 0) | is_open
        return sum((is_one.astype(jnp.uint32) << i for i, is_one in enumerate(champions)), jnp.uint32(0))

    def members(packed: jax.Array) -> list[jax.Array]:
        """Parts of [num_arms] bool."""
        return [(packed >> i) & 1 == 1 for i in range(num_arms)] if is_short else [packed]

    def next_hypothesis(packed: jax.Array, hypothesis: jax.Array) -> jax.Array:
        """[] int32, the arm that is taken for the best, or -1."""
        champions = members(packed)
        alone = combined(jnp.add, [each.astype(jnp.int32) for each in champions]) == 1
        kept = combined(jnp.logical_or, [each & (i == hypothesis) for i, each in zip(every, champions, strict=True)])
        last = combined(jnp.maximum, [jnp.where(each, i, -1) for i, each in zip(every, champions, strict=True)])
        return jnp.where(alone, last, jnp.where(kept, hypothesis, -1))

    def view(params: Params, public: Public) -> tuple[jax.Array, jax.Array]:
        """Arms that by their bounds beat every other, and the one that is taken for the best, or -1."""
        champions = own_kernel(champions_of, public.wins, spread(params, public))
        return champions, own_kernel(next_hypothesis, champions, public.hypothesis)

    def drawn(uniform: jax.Array, odds: list[jax.Array]) -> jax.Array:
        """[] int32, the arm that a uniform variate stands for."""
        odds = [each.astype(uniform.dtype) for each in odds]
        return inline_index_at(uniform, odds if is_short else odds[0])

    def draw_left(uniform: jax.Array, packed: jax.Array, hypothesis: jax.Array) -> jax.Array:
        """[] int32: a champion, or any arm if there is none; the hypothesis half of the time."""
        champions = members(packed)
        none = ~combined(jnp.logical_or, champions)
        drawn_from = [each | none for each in champions]
        others = combined(jnp.add, [each.astype(jnp.int32) for each in drawn_from]) - 1
        odds = [jnp.where(i == hypothesis, jnp.maximum(others, 1), 1) for i in every]
        return drawn(uniform, [jnp.where(each, odd, 0) for each, odd in zip(drawn_from, odds, strict=True)])

    def draw_right(uniform: jax.Array, wins: jax.Array, left: jax.Array, spread: jax.Array, far: jax.Array):
        """[] int32: an arm with the largest upper bound against the left one, which itself is only if no other is."""
        wins, bounds = lanes_last(wins), []
        for i, won, lost in zip(every, line_parts(wins, left, 1), line_parts(wins, left, 0), strict=True):
            lead, duels = ((won + sign * lost).astype(spread.dtype) for sign in (-1, 1))
            share = 1 / jnp.maximum(duels, 1)
            bound = lead * share / 2 + jnp.sqrt(spread * share)  # of P[i, left] - 1/2, less the common factor
            bounds.append(jnp.where(i == left, 0, jnp.where(duels > 0, bound, far)))
        largest = combined(jnp.maximum, bounds)
        tied = [bound == largest for bound in bounds]
        others = [each & (i != left) for i, each in zip(every, tied, strict=True)]
        found = combined(jnp.logical_or, others)
        return drawn(uniform, [jnp.where(found, other, each) for other, each in zip(others, tied, strict=True)])

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        champions, hypothesis = view(params, public)
        uniforms = two_uniforms(key)
        left = own_kernel(draw_left, uniforms[0], champions, hypothesis)
        far = 1.5 * jnp.tanh(params.epsilon / 2)
        right = own_kernel(draw_right, uniforms[1], public.wins, left, spread(params, public), far)
        return jnp.stack([left, right])

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del public, context
        return randomized_outcome(key, params.epsilon, action, feedback)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public = state.public
        hypothesis = view(params, public)[1]
        wins = lanes_last(tally_report(public.wins, report))
        return State((), Public(public.round + 1, wins, hypothesis))

    return Learner(
        params=params,
        guarantee=claimed(params, local_claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )

"""Relative upper confidence bounds, on reports that each user randomizes."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.dueling.reports import local_claim, randomized_outcome, tally_report
from jaxdp.interface import Interface, Space, pairs
from jaxdp.kernels import folded, own_kernel
from jaxdp.learner import Guarantee, Learner, Scalar, State, scalar_leaf, validated
from jaxdp.random import fast
from jaxdp.random.choice import inline_index_at
from jaxdp.validation import check_above, check_count, check_epsilon, check_number


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
        losses: [num_arms, num_arms] integer, how often to have lost: the transpose, kept because rows are read faster.
        hypothesis: [] int32, the arm that is taken for the best; -1 for none.
    """

    round: jax.Array
    wins: jax.Array
    losses: jax.Array
    hypothesis: jax.Array


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
        ValueError: if num_arms < 2.

    Privacy: epsilon-DP in the local model; unit: one duel's outcome; adjacency: replace one. An outcome leaves the
        user's device once, by randomized response; everything else is post-processing. Private leaves: none. Released:
        all reports.
    Source: Zoghi, Whiteson, Munos & de Rijke (2014), Algorithm 1, to which it is equal at epsilon = inf; on privatized
        responses as in "Optimal Rates for Private Stochastic Dueling Bandits" (2025).
    Deviations: the common factor c is divided out of all bounds less 1/2, which changes no decision.
    """
    num_arms = check_count("num_arms", num_arms, 2)

    def params(*, epsilon: float, exploration_rate: float = 0.51) -> Params:
        check_number("exploration_rate", check_above("exploration_rate", exploration_rate, 0.5))
        return Params(
            epsilon=scalar_leaf("epsilon", check_epsilon(epsilon)),
            exploration_rate=scalar_leaf("exploration_rate", exploration_rate),
        )

    def guarantee(*, epsilon: float, exploration_rate: float = 0.51) -> Guarantee:
        del exploration_rate
        return local_claim(epsilon)

    def init(key, params: Params) -> State:
        del key, params
        none = jnp.zeros((num_arms, num_arms), jnp.result_type(int))
        return State((), Public(none[0, 0], none, none, jnp.int32(-1)))

    def spread(params: Params, public: Public) -> jax.Array:
        return params.exploration_rate * jnp.log((public.round + 1).astype(jnp.result_type(float)))

    def champions_of(wins: jax.Array, losses: jax.Array, spread: jax.Array) -> jax.Array:
        """[num_arms] bool: arms that by their bounds beat every other."""
        champions = jnp.ones(num_arms, bool)
        for rival in range(num_arms):  # the bound is >= 1/2 if lead / (2 N) >= -sqrt(spread / N)
            won, lost = losses[rival].astype(spread.dtype), wins[rival].astype(spread.dtype)
            lead = won - lost
            champions = champions & ((lead >= 0) | (lead * lead <= 4 * spread * (won + lost)))
        return champions

    def view(params: Params, public: Public) -> tuple[jax.Array, jax.Array]:
        """Arms that by their bounds beat every other, and the one that is taken for the best, or -1."""
        width = spread(params, public)
        champions = own_kernel(champions_of, public.wins, public.losses, width)
        every = jnp.arange(num_arms, dtype=jnp.int32)
        alone = folded(jnp.add, champions.astype(jnp.int32)) == 1
        kept = folded(jnp.logical_or, champions & (every == public.hypothesis))
        hypothesis = jnp.where(kept, public.hypothesis, -1)
        last = folded(jnp.maximum, jnp.where(champions, every, -1))
        return champions, jnp.where(alone, last, hypothesis)

    def bounds_against(params: Params, public: Public, left: jax.Array) -> jax.Array:
        """[num_arms] float: upper bounds of P[i, left] - 1/2, less the common factor."""
        float_ = jnp.result_type(float)
        wins, losses = public.losses[left].astype(float_), public.wins[left].astype(float_)
        duels = wins + losses
        share = 1 / jnp.maximum(duels, 1)
        bounds = (wins - losses) * share / 2 + jnp.sqrt(spread(params, public) * share)
        bounds = jnp.where(duels > 0, bounds, 1.5 * jnp.tanh(params.epsilon / 2))
        return jnp.where(jnp.arange(num_arms, dtype=left.dtype) == left, 0, bounds)

    def draw_left(uniform: jax.Array, champions: jax.Array, hypothesis: jax.Array) -> jax.Array:
        """[] int32: a champion, or any arm if there is none; the hypothesis half of the time."""
        drawn_from = champions | ~folded(jnp.logical_or, champions)
        others = folded(jnp.add, drawn_from.astype(jnp.int32)) - 1
        odds = jnp.where(jnp.arange(num_arms, dtype=jnp.int32) == hypothesis, jnp.maximum(others, 1), 1)
        return inline_index_at(uniform, jnp.where(drawn_from, odds, 0).astype(uniform.dtype))

    def draw_right(uniform: jax.Array, against: jax.Array, left: jax.Array) -> jax.Array:
        """[] int32: an arm with the largest bound against the left one, which itself is only if no other is."""
        tied = against == folded(jnp.maximum, against)
        others = tied & (jnp.arange(num_arms, dtype=left.dtype) != left)
        drawn_from = jnp.where(folded(jnp.logical_or, others), others, tied)
        return inline_index_at(uniform, drawn_from.astype(uniform.dtype))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        champions, hypothesis = view(params, public)
        uniforms = jax.random.uniform(fast(key), (2,), jnp.result_type(float))
        left = own_kernel(draw_left, uniforms[0], champions, hypothesis)
        right = own_kernel(draw_right, uniforms[1], bounds_against(params, public, left), left)
        return jnp.stack([left, right])

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del public, context
        return randomized_outcome(key, params.epsilon, action, feedback)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public = state.public
        hypothesis = view(params, public)[1]
        (left, right), response = report
        wins = tally_report(public.wins, report)
        losses = tally_report(public.losses, (jnp.stack([right, left]), response))
        return State((), Public(public.round + 1, wins, losses, hypothesis))

    return Learner(
        params=params,
        guarantee=validated(params, guarantee),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )

"""Double Thompson sampling, on reports that each user randomizes."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from jaxdp.dueling.reports import local_claim, randomized_outcome, tally_report
from jaxdp.interface import Interface, Space, pairs
from jaxdp.learner import Guarantee, Learner, Scalar, State, scalar_leaf, validated
from jaxdp.random import weighted_index
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
    """What has been reported.

    Attributes:
        round: [] integer, rounds played.
        wins: [num_arms, num_arms] integer, how often the row's arm is reported to have won against the column's.
    """

    round: jax.Array
    wins: jax.Array


def double_thompson(*, num_arms: int) -> Learner:
    """Two draws from the posterior: which arm beats the most others, and which one beats that arm (D-TS).

    With N duels of i and j and c = (e^epsilon + 1) / (e^epsilon - 1), bounds of P[i, j] are the debiased share of wins
    +- c sqrt(exploration_rate ln t / N). The left arm is one of those that by upper bounds beat the most others: the
    one that does in a draw from the posterior of all pairs. The right arm is the one that beats it with the largest
    probability in a second draw, among arms whose lower bound against it is at most 1/2.

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
    Source: Wu & Liu (2016), Algorithm 1 (D-TS), to which it is equal at epsilon = inf.
    Deviations: *the posterior is a heuristic under privacy*: Beta(1 + a, 1 + b), where a and b share N / c^2 in
        proportion to the debiased shares, clipped to [0, 1]. Debiased reports have a variance c^2 times as large, so
        that N of them tell as much as about N / c^2 outcomes; no regret bound is known. The bounds are those of `rucb`.
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
        integer = jnp.result_type(int)
        return State((), Public(jnp.zeros((), integer), jnp.zeros((num_arms, num_arms), integer)))

    def posterior(params: Params, wins: jax.Array) -> jax.Array:
        """[num_arms, num_arms] float >= 1, the first parameters of the Beta laws; the transpose has the second ones."""
        duels, bias = wins + wins.T, jnp.tanh(params.epsilon / 2)
        share = 0.5 + (wins - wins.T) / (2 * bias * jnp.maximum(duels, 1))
        return 1 + bias * bias * duels * jnp.clip(share, 0, 1)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del context
        key_first, key_ties, key_second = jax.random.split(key, 3)
        wins = public.wins.astype(params.epsilon.dtype)
        duels = wins + wins.T
        middle = (wins - wins.T) / (2 * jnp.maximum(duels, 1))  # of the reports: the bias changes no sign
        log_round = jnp.log((public.round + 1).astype(wins.dtype))
        radius = jnp.sqrt(params.exploration_rate * log_round / jnp.maximum(duels, 1))
        radius = jnp.where(duels > 0, radius, 1.5)
        other = ~jnp.eye(num_arms, dtype=bool)

        may_beat = jnp.sum((middle + radius > 0) & other, axis=1, dtype=jnp.int32)
        first_parameters = posterior(params, wins)
        rows, columns = np.triu_indices(num_arms, 1)  # one draw a pair
        drawn = jax.random.beta(key_first, first_parameters[rows, columns], first_parameters[columns, rows])
        row_wins = (drawn > 0.5).astype(jnp.int32)
        beats = jnp.zeros(num_arms, jnp.int32).at[rows].add(row_wins).at[columns].add(1 - row_wins)
        beats = jnp.where(may_beat == may_beat.max(), beats, -1)
        left = weighted_index(key_ties, (beats == beats.max()).astype(wins.dtype))

        rival = jax.random.beta(key_second, first_parameters[:, left], first_parameters[left])
        rival = jnp.where(jnp.arange(num_arms, dtype=left.dtype) == left, 0.5, rival)
        uncertain = (middle[:, left] - radius[:, left] <= 0) | ~other[left]
        right = jnp.argmax(jnp.where(uncertain, rival, -1)).astype(jnp.int32)
        return jnp.stack([left, right])

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del public, context
        return randomized_outcome(key, params.epsilon, action, feedback)

    def update(key, params: Params, state: State, report) -> State:
        del key, params
        public = state.public
        return State((), Public(public.round + 1, tally_report(public.wins, report)))

    return Learner(
        params=params,
        guarantee=validated(params, guarantee),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )

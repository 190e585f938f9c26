"""Elimination by effective Borda scores on reports that each user randomizes."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import Interface, Learner, Scalar, Space, State, claimed, default_float, factory, pairs, scalar_leaf
from jaxdp.dueling.reports import local_claim, randomized_outcome
from jaxdp.random import ties, weighted_index
from jaxdp.validation import (
    check_choice,
    check_epsilon,
    check_horizon,
    check_num_arms,
    check_positive,
    check_probability,
)

CONSTANTS = ("tight", "paper")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        squared_radius: [] float > 0, of the confidence interval of one report's mean; that of n is n times smaller.
    """

    epsilon: Scalar
    squared_radius: Scalar


class Public(NamedTuple):
    """What has been reported, and what follows from it.

    Attributes:
        active: [num_arms] bool, the arms that are left.
        plays: [num_arms, num_arms] integer, duels of the row's arm as the left one with the column's.
        wins: [num_arms, num_arms] integer, those of them that the left arm is reported to have won.
    """

    active: jax.Array
    plays: jax.Array
    wins: jax.Array


@factory
def ebs_local(*, num_arms: int, horizon: int, constants: str = "tight") -> Learner:
    """Duels of the least played active arm with a random one; arms whose interval lies below another's are dropped.

    Of several arms that were played least any is the left one, each as likely.

    With S the active arms, n_i the duels of arm i as the left one with arms in S, and p_i the share of them that it
    won, debiased by c = (e^epsilon + 1) / (e^epsilon - 1): i is dropped if p_i + c r / sqrt(n_i) < max_j p_j - c r /
    sqrt(n_j). Duels with dropped arms no longer count. An arm that is left alone duels with itself.

    Args:
        num_arms: number of arms K, >= 2.
        horizon: rounds T, >= 1.
        constants: "tight", Hoeffding's r^2 = ln(2 K T / failure_prob) / 2; or "paper", r^2 = ln(K T / failure_prob),
            which is never smaller.

    Returns:
        A learner whose actions are pairs of arms ([2] int32: left, right). Feedback is [] int32, 1 if the left arm
        wins, clipped to {0, 1}.

    Raises:
        ValueError: if num_arms < 2 or all pairs are more than integers count, horizon < 1, or constants has another
            name.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), by default 0.05.
        confidence_multiplier: > 0, by default 1, which multiplies r.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Why: An outcome leaves the user's device once, by randomized response; everything else is post-processing.
        - Released: all reports.
        - Private: none.

    Source:
        DP-Dueling (Saha & Asi, 2024), Algorithm 1 and Remark 3. At epsilon = inf it is the algorithm without privacy.

    Deviations:
        The bias of randomized response scales shares and intervals alike, so that the decisions are those of the
        reports' own shares with the interval r / sqrt(n), which is what is computed. All arms are compared after every
        round, and dropped together. As in the paper, whose analysis takes the active set and n_i for fixed though they
        depend on the outcomes, failure_prob is proved for a fixed set only; privacy does not depend on it.
    """
    num_arms, horizon = check_num_arms(num_arms), check_horizon(horizon)
    is_paper = check_choice("constants", constants, CONSTANTS) == "paper"

    def params(*, epsilon: float, failure_prob: float = 0.05, confidence_multiplier: float = 1.0) -> Params:
        check_probability("failure_prob", failure_prob)
        check_positive("confidence_multiplier", confidence_multiplier)
        events = math.log(num_arms) + math.log(horizon) - math.log(failure_prob)
        # A product: a power too large is an error of its own, and a product infinity.
        squared = confidence_multiplier * confidence_multiplier * (events if is_paper else (events + math.log(2)) / 2)
        check_positive("the squared radius", squared)
        return Params(
            epsilon=scalar_leaf("epsilon", check_epsilon(epsilon)),
            squared_radius=scalar_leaf("the squared radius", squared),
        )

    def init(key, params: Params) -> State:
        del key, params
        none = jnp.zeros((num_arms, num_arms), jnp.result_type(int))
        return State((), Public(jnp.ones(num_arms, bool), none, none))

    def duels(public: Public, counts: jax.Array) -> jax.Array:
        """Of each arm as the left one with active ones."""
        return jnp.sum(jnp.where(public.active[None, :], counts, 0), axis=1, dtype=counts.dtype)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del params, context
        played = duels(public, public.plays)
        seldom = jnp.where(public.active, -played, jnp.iinfo(played.dtype).min)
        left = ties.largest(seldom, ties.ranks(ties.word_beside(key), num_arms))
        return jnp.stack([left, weighted_index(key, public.active.astype(default_float()))])

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del public, context
        return randomized_outcome(key, params.epsilon, action, feedback)

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (action, response) = state.public, report
        public = public._replace(
            plays=public.plays.at[action[0], action[1]].add(1),
            wins=public.wins.at[action[0], action[1]].add(response.astype(public.wins.dtype)),
        )
        float_ = default_float()
        played, won = (duels(public, counts).astype(float_) for counts in (public.plays, public.wins))
        share = won / jnp.maximum(played, 1)
        radius = jnp.where(played > 0, jnp.sqrt(params.squared_radius / jnp.maximum(played, 1)), jnp.inf)
        best = jnp.max(jnp.where(public.active, share - radius, -jnp.inf))
        return State((), public._replace(active=public.active & (share + radius >= best)))

    return Learner(
        params=params,
        guarantee=claimed(params, local_claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        horizon=horizon,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )

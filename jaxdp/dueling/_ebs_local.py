"""Elimination by effective Borda scores, computed from reports that each user randomizes."""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import (
    Interface,
    Learner,
    Scalar,
    Space,
    State,
    default_float,
    factory,
    guarantee_for,
    pairs,
    scalar_leaf,
)
from jaxdp.core.params import pytree_dataclass
from jaxdp.dueling.reports import local_claim, report_outcome
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


@pytree_dataclass
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        squared_radius: [] float > 0, r^2: the confidence interval of the mean of n reports has radius r / sqrt(n).
    """

    epsilon: Scalar
    squared_radius: Scalar


class Public(NamedTuple):
    """The remaining arms, and sums of the reports so far.

    Attributes:
        active: [num_arms] bool, the remaining arms.
        plays: [num_arms, num_arms] integer, number of duels of the row's arm, on the left, against the column's arm.
        wins: [num_arms, num_arms] integer, number of these duels that the left arm is reported to have won.
    """

    active: jax.Array
    plays: jax.Array
    wins: jax.Array


@factory
def ebs_local(*, num_arms: int, horizon: int, constants: str = "tight") -> Learner:
    r"""Plays the least-played active arm against a random active arm; drops arms with clearly lower reported scores.

    The left arm is the active arm that was on the left least often in duels with active arms; ties are broken at
    random. An arm's score is the debiased fraction of these duels that the arm is reported to have won. Duels with
    dropped arms no longer count. An arm is dropped if its confidence interval lies below another arm's interval (see
    Math). The last remaining arm duels with itself.

    Args:
        num_arms: number of arms K, >= 2.
        horizon: rounds T, >= 1.
        constants: determines the factor r in the confidence radius r / sqrt(n) of a fraction of n duels. "tight":
            Hoeffding's r^2 = ln(2 K T / failure_prob) / 2. "paper": r^2 = ln(K T / failure_prob), which is never
            smaller.

    Returns:
        A learner. Actions are pairs of arms ([2] int32: left, right), and feedback is [] int32, 1 if the left arm wins,
        else 0 (clipped).

    Raises:
        ValueError: if num_arms < 2 or the number of pairs exceeds the integer range, horizon < 1 or exceeds this range,
            or constants is neither "tight" nor "paper". The result's `params` raises this error if a value is out of
            range.

    Values:
        epsilon: the privacy budget, > 0.
        failure_prob: in (0, 1), by default 0.05; determines r (see Deviations for its meaning).
        confidence_multiplier: > 0, by default 1; multiplies r.

    Privacy:
        - Claim: epsilon-DP in the local model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Why: an outcome leaves the user's device once, by randomized response; everything else is post-processing.
        - Released: all reports.
        - Private: no part of the state, which is computed from reports alone.

    Source:
        DP-Dueling (Saha & Asi, 2024), Algorithm 1 and Remark 3. At epsilon = inf it is the non-private algorithm.

    Deviations:
        * Debiasing multiplies the differences of fractions and the intervals by the same factor c. So the code compares
          fractions of reported wins without debiasing, with intervals r / sqrt(n). The decisions are the same.
        * All arms are compared after every round. Several arms may be dropped at once.
        * failure_prob bounds the probability that some interval fails only if the active set and n_i are fixed in
          advance, as the paper's analysis assumes. Here, as in the paper's algorithm, they depend on the outcomes.
          Privacy does not depend on failure_prob.

    Math:
        Let $\hat p_i$ be the debiased fraction of wins of arm $i$ in the $n_i$ duels with active arms in which it was
        on the left. Arm $i$ is dropped if

        $$
        \hat p_i + \frac{c r}{\sqrt{n_i}} < \max_j \Big( \hat p_j - \frac{c r}{\sqrt{n_j}} \Big), \quad
        c = \frac{e^{\varepsilon} + 1}{e^{\varepsilon} - 1}, \quad
        r = \sqrt{\frac{\ln(2 K T / \beta)}{2}}
        $$

        for "tight", where $\beta$ is `failure_prob`. A report keeps the outcome with probability
        $1 / (1 + e^{-\varepsilon})$.
    """
    num_arms, horizon = check_num_arms(num_arms), check_horizon(horizon)
    is_paper = check_choice("constants", constants, CONSTANTS) == "paper"

    def params(*, epsilon: float, failure_prob: float = 0.05, confidence_multiplier: float = 1.0) -> Params:
        check_probability("failure_prob", failure_prob)
        check_positive("confidence_multiplier", confidence_multiplier)
        events = math.log(num_arms) + math.log(horizon) - math.log(failure_prob)
        # A product instead of a power: if a power is too large, Python raises an error, but a product becomes infinite.
        squared = confidence_multiplier * confidence_multiplier * (events if is_paper else (events + math.log(2)) / 2)
        check_positive("the squared radius", squared)
        return Params(
            epsilon=scalar_leaf("epsilon", check_epsilon(epsilon)),
            squared_radius=scalar_leaf("the squared radius", squared),
        )

    def init(key, params: Params) -> State:
        del key, params
        zeros = jnp.zeros((num_arms, num_arms), jnp.result_type(int))
        return State((), Public(jnp.ones(num_arms, bool), zeros, zeros))

    def sum_active(public: Public, counts: jax.Array) -> jax.Array:
        """Sums the counts of each left arm over active right arms; the result is [num_arms] integer."""
        return jnp.sum(jnp.where(public.active[None, :], counts, 0), axis=1, dtype=counts.dtype)

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del params, context
        played = sum_active(public, public.plays)
        negated_plays = jnp.where(public.active, -played, jnp.iinfo(played.dtype).min)
        left = ties.largest(negated_plays, ties.ranks(ties.word_beside(key), num_arms))
        return jnp.stack([left, weighted_index(key, public.active.astype(default_float()))])

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (action, response) = state.public, report
        public = public._replace(
            plays=public.plays.at[action[0], action[1]].add(1),
            wins=public.wins.at[action[0], action[1]].add(response.astype(public.wins.dtype)),
        )
        float_ = default_float()
        played, won = (sum_active(public, counts).astype(float_) for counts in (public.plays, public.wins))
        share = won / jnp.maximum(played, 1)
        radius = jnp.where(played > 0, jnp.sqrt(params.squared_radius / jnp.maximum(played, 1)), jnp.inf)
        best = jnp.max(jnp.where(public.active, share - radius, -jnp.inf))
        return State((), public._replace(active=public.active & (share + radius >= best)))

    return Learner(
        params=params,
        guarantee=guarantee_for(params, local_claim),
        init=init,
        act=act,
        privatize=report_outcome,
        update=update,
        horizon=horizon,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )

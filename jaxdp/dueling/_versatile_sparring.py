"""Two Tsallis-INF players, one for each arm of a duel, on reports that each user randomizes."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from jaxdp.core import (
    Guarantee,
    Interface,
    Learner,
    Scalar,
    Space,
    State,
    claimed,
    default_float,
    factory,
    only,
    pairs,
    scalar_leaf,
)
from jaxdp.dueling.reports import local_claim, noisy_outcome, randomized_outcome
from jaxdp.mechanisms import analytic_gaussian, round_up
from jaxdp.numerics import compensated
from jaxdp.numerics.kernels import lanes_last, own_kernel
from jaxdp.numerics.tsallis import tsallis_weights
from jaxdp.random.choice import inline_index_at
from jaxdp.random.threefry import two_uniforms
from jaxdp.validation import check_choice, check_epsilon, check_horizon, check_num_arms, check_probability

REPORTS = ("rr", "gaussian")
LOSS_ESTIMATES = ("importance", "reduced_variance")


@jax.tree_util.register_dataclass
@dataclass(frozen=True, kw_only=True)
class Params:
    """Traced values.

    Attributes:
        epsilon: [] float, privacy budget, > 0; infinity is the non-private algorithm.
        noise_stddev: [] float >= 0, of a Gaussian report; zero for randomized response.
        shift: [] float >= 0, a Gaussian report in [-shift, 1 + shift] becomes a loss in [0, 1], and one beyond is
            clipped; zero for randomized response.
    """

    epsilon: Scalar
    noise_stddev: Scalar
    shift: Scalar


class Public(NamedTuple):
    """What follows from the reports, for both players: first that of the left arm, then that of the right one.

    Attributes:
        round: [] integer, rounds played.
        losses: [num_arms, 2] compensated sums of estimated losses.
        weights: [num_arms, 2] float, the probabilities with which each plays next.
    """

    round: jax.Array
    losses: compensated.Sum
    weights: jax.Array


@factory
def versatile_sparring(
    *, num_arms: int, report: str = "rr", losses: str = "importance", horizon: int | None = None
) -> Learner:
    """Two Tsallis-INF players spar: one draws the left arm, one the right, and each has a loss of 1 where it loses.

    In round t a player draws arm i with probability w_i = 4 / (rate (L_i - x))^2, where L are estimated losses so far
    and x makes the sum 1. With a reported loss y in [0, 1] of arm I the estimates are

    * "importance": y 1[i = I] / w_i, with rate 2 / sqrt(t);
    * "reduced_variance": 1[i = I] (y - b_i) / w_i + b_i, b_i = 1/2 where w_i >= rate^2, else 0, with rate 4 / sqrt(t).

    Args:
        num_arms: number of arms, >= 2.
        report: "rr", randomized response; or "gaussian", the outcome with noise of standard deviation s, analytically
            calibrated, which becomes (report + m) / (1 + 2 m), clipped to [0, 1], m = s sqrt(2 ln(2 T / failure_prob)).
        losses: "importance" or "reduced_variance".
        horizon: rounds T, >= 1; needed for Gaussian reports, and otherwise not.

    Returns:
        A learner whose actions are pairs of arms ([2] int32: left, right). Feedback is [] int32, 1 if the left arm
        wins, clipped to {0, 1}.

    Raises:
        ValueError: if num_arms < 2, report or losses has another name, or horizon < 1; or if it is missing for Gaussian
            reports, or given without.

    Values:
        epsilon: the privacy budget, > 0.
        delta, failure_prob: with Gaussian reports, (by default 0.05), both in (0, 1).

    Privacy:
        - Claim: epsilon-DP (randomized response) or (epsilon, delta)-DP (Gaussian) in the local model.
        - Unit: one duel's outcome; adjacency: replace one.
        - Why: An outcome leaves the user's device once; everything else is post-processing.
        - Released: all reports.
        - Private: none.

    Source:
        Ailon, Karnin & Joachims (2014), sparring; Saha & Gaillard (2022), with Tsallis-INF (Zimmert & Seldin, 2021); on
        privatized responses as in "Optimal Rates for Private Stochastic Dueling Bandits" (2025). Randomized bits are
        losses in [0, 1], affine in the true ones with slope (e^epsilon - 1) / (e^epsilon + 1), so that regret is larger
        by the inverse of that; Gaussian reports cost a factor of 1 + 2 m.

    Deviations:
        Estimated losses are compensated sums, and weights in float32 are right to about 1e-6.
    """
    num_arms = check_num_arms(num_arms)
    is_gaussian = check_choice("report", report, REPORTS) == "gaussian"
    is_importance = check_choice("losses", losses, LOSS_ESTIMATES) == "importance"
    if is_gaussian != (horizon is not None):
        raise ValueError(f"horizon must be given for Gaussian reports, and only for them, got {horizon} for {report!r}")
    rounds = 0 if horizon is None else check_horizon(horizon)
    rate_factor = 2.0 if is_importance else 4.0

    def params(*, epsilon: float, delta: float = 0.0, failure_prob: float = 0.05) -> Params:
        budget = scalar_leaf("epsilon", check_epsilon(epsilon))
        stddev = shift = 0.0
        if is_gaussian:
            check_probability("failure_prob", failure_prob)
            stddev = analytic_gaussian(epsilon, delta)
            shift = stddev * math.sqrt(2 * (math.log(2 * rounds) - math.log(failure_prob)))
        return Params(
            epsilon=budget,
            noise_stddev=round_up(stddev, default_float()),
            shift=scalar_leaf("the shift of reports", shift),
        )

    def claim(epsilon: float, delta: float = 0.0) -> Guarantee:
        if is_gaussian:
            return local_claim(epsilon, delta, "the Gaussian mechanism at L2 sensitivity 1")
        return local_claim(epsilon)

    def init(key, params: Params) -> State:
        del key, params
        none = jnp.zeros((num_arms, 2), default_float())
        return State((), Public(jnp.zeros((), jnp.result_type(int)), compensated.zero(none), none + 1 / num_arms))

    def rate(round_: jax.Array, dtype) -> jax.Array:
        """Of a round counted from 0."""
        return rate_factor / jnp.sqrt((round_ + 1).astype(dtype))

    def draw(uniforms: jax.Array, weights: jax.Array) -> jax.Array:
        return lanes_last(jax.vmap(inline_index_at, (0, 1))(lanes_last(uniforms), lanes_last(weights)))

    def act(key, params: Params, public: Public, context: None) -> jax.Array:
        del params, context
        return own_kernel(draw, two_uniforms(key), public.weights)

    def privatize(key, params: Params, public: Public, context: None, action, feedback):
        del public, context
        if not is_gaussian:
            return randomized_outcome(key, params.epsilon, action, feedback)
        return noisy_outcome(key, params.epsilon, params.noise_stddev, action, feedback)

    def added(losses: compensated.Sum, weights, arms, won, threshold) -> compensated.Sum:
        """The sums after the left player's arm has won so much, in [0, 1], against the right player's."""
        losses, weights, arms = jax.tree.map(lanes_last, (losses, weights, arms))
        reported = jnp.where(jnp.arange(2) == 0, 1 - won, won)
        played = jnp.arange(num_arms, dtype=arms.dtype)[:, None] == arms[None]
        if is_importance:
            estimates = jnp.where(played, reported[None] / weights, 0)
        else:
            base = jnp.where(weights >= threshold, 0.5, 0).astype(weights.dtype)
            estimates = base + jnp.where(played, (reported[None] - base) / weights, 0)
        return jax.tree.map(lanes_last, compensated.add(losses, estimates))

    def update(key, params: Params, state: State, report) -> State:
        del key
        public, (arms, said) = state.public, report
        float_ = public.weights.dtype
        won = jnp.clip((said.astype(float_) + params.shift) / (1 + 2 * params.shift), 0, 1)
        now = public.losses, public.weights, arms, won, rate(public.round, float_) ** 2
        # A kernel gives one array: two kernels that do the same are faster than what both need, stored.
        losses = compensated.Sum(*(own_kernel(lambda *a, i=i: added(*a)[i], *now) for i in range(2)))
        weights = tsallis_weights(losses.total, rate(public.round + 1, float_), losses.excess)
        return State((), Public(public.round + 1, losses, weights))

    values = only(params, ("epsilon", "delta", "failure_prob") if is_gaussian else ("epsilon",))
    return Learner(
        params=values,
        guarantee=claimed(values, claim),
        init=init,
        act=act,
        privatize=privatize,
        update=update,
        horizon=horizon,
        interface=Interface(pairs(num_arms), Space("integers", (), 0, 1)),
    )
